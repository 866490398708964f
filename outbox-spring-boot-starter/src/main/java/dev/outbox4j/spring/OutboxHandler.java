package dev.outbox4j.spring;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.springframework.aot.hint.annotation.Reflective;

/**
 * Marks a method of a bean that handles messages of a queue.
 *
 * <p>The method takes the body, the {@link dev.outbox4j.Delivery}, or both. The body is decoded to
 * the type of the parameter, type arguments included. The method returns nothing, an {@link
 * dev.outbox4j.Outcome}, a {@link java.util.concurrent.CompletionStage} or a {@linkplain
 * dev.outbox4j.ResultHandler publisher}; it throws to say that the attempt failed. It must be
 * thread-safe and idempotent: delivery is at least once. With {@link
 * org.springframework.scheduling.annotation.Async} it must return a {@link
 * java.util.concurrent.CompletableFuture}. On a bean with a proxy it must not be final.
 *
 * <p>With {@link #transactional()} the method runs in the transaction that acks its message, with
 * {@link #batch()} it takes several messages at once.
 *
 * <p>All methods of one queue share a subscriber, whose settings are {@code outbox4j.subscriber.*}
 * and {@code outbox4j.queues.<queue>.*}. A method that breaks these rules keeps the context from
 * starting.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
@Reflective(HandlerHints.class)
public @interface OutboxHandler {

  /** {@return the queue; may hold placeholders such as <code>${shop.queue}</code>} */
  String queue();

  /**
   * {@return the message types, which may hold placeholders; if there are none, all types that have
   * no method of their own, whose body must be a {@link dev.outbox4j.Payload}}
   */
  String[] type() default {};

  /**
   * {@return whether the method runs in the transaction that acks its message} It is Spring's, by
   * JDBC or JPA: what the method writes to the outbox's database is committed together with the
   * message's end, or not at all, and so is what it publishes. The method returns nothing or an
   * {@link dev.outbox4j.Outcome}; whatever it throws rolls back. {@link dev.outbox4j.Transactional}
   * has the rules.
   */
  boolean transactional() default false;

  /**
   * {@return how many messages the method takes at once at most, 2 to 10,000; 0 for one at a time}
   * It then takes a {@code List<BatchMessage<T>>}, of messages of one type, and returns nothing, a
   * {@link java.util.concurrent.CompletionStage} or a publisher. {@link dev.outbox4j.BatchHandler}
   * and {@link dev.outbox4j.BatchResultHandler} have the rules.
   */
  int batch() default 0;

  /**
   * {@return how long a batch waits for further messages once it has one, such as {@code 20ms}, up
   * to 1 minute; may hold placeholders. Empty: not at all}
   */
  String linger() default "";
}
