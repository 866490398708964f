package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.BatchMessage;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxException;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.aot.hint.ReflectionHints;
import org.springframework.aot.hint.annotation.Reflective;
import org.springframework.beans.factory.support.DefaultListableBeanFactory;
import org.springframework.beans.factory.support.RootBeanDefinition;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.core.env.MapPropertySource;
import org.springframework.scheduling.annotation.Async;
import org.springframework.transaction.annotation.Propagation;
import org.springframework.transaction.annotation.Transactional;

@ExtendWith(OutputCaptureExtension.class)
class HandlerMethodsTest {

  record Item(String name) {}

  static class Good {
    @OutboxHandler(queue = "${shop.queue}", type = "${shop.type}")
    void named(Item item) {}

    @OutboxHandler(
        queue = "orders",
        type = {"a", "b"})
    Outcome severalTypes(Delivery delivery, List<Item> items) {
      return Outcome.ack();
    }

    @OutboxHandler(queue = "orders")
    CompletionStage<Void> theRest(Payload payload) {
      return CompletableFuture.completedFuture(null);
    }

    @OutboxHandler(queue = "mail", type = "sent")
    void deliveryAlone(Delivery delivery) {}
  }

  @Test
  void findsMethodsByQueueWithTheirPlaceholdersResolved() {
    Map<String, List<HandlerMethod>> found = of(Good.class);
    assertThat(found.keySet()).containsExactly("mail", "orders", "shop");
    assertThat(found.get("shop"))
        .singleElement()
        .satisfies(method -> assertThat(method.types()).containsExactly("item.added"));
    assertThat(found.get("orders"))
        .extracting(HandlerMethod::types)
        .containsExactlyInAnyOrder(List.of("a", "b"), List.of());
  }

  @Transactional(readOnly = true)
  static class ReadsOnly {
    @OutboxHandler(queue = "orders", type = "a")
    public void handle(Item item) {}

    @Transactional
    @OutboxHandler(queue = "orders", type = "b")
    public void writes(Item item) {}
  }

  static class Commits {
    @Transactional
    @OutboxHandler(queue = "orders", type = "a")
    public void handle(Item item) throws IOException {}

    @Transactional(rollbackFor = Exception.class)
    @OutboxHandler(queue = "orders", type = "b")
    public void rollsBack(Item item) throws IOException {}

    @OutboxHandler(queue = "orders", type = "c", transactional = true)
    public void withItsAck(Item item) throws IOException {}

    @Transactional
    @OutboxHandler(queue = "orders", type = "d")
    public void unchecked(Item item) throws IllegalStateException {}
  }

  @Test
  void tellsOfATransactionThatWritesNothing(CapturedOutput output) {
    of(ReadsOnly.class);
    assertThat(warnings(output))
        .singleElement()
        .asString()
        .contains("ReadsOnly.handle runs in @Transactional(readOnly = true)", "acked");
  }

  @Test
  void tellsOfATransactionThatKeepsWhatAFailedAttemptWrote(CapturedOutput output) {
    of(Commits.class);
    assertThat(warnings(output))
        .singleElement()
        .asString()
        .contains("Commits.handle declares java.io.IOException", "rollbackFor = Exception.class");
  }

  private static List<String> warnings(CapturedOutput output) {
    return output
        .toString()
        .lines()
        .filter(line -> line.contains("WARN") && line.contains("@OutboxHandler"))
        .toList();
  }

  static class NoBody {
    @OutboxHandler(queue = "orders", type = "a")
    void handle() {}
  }

  static class TwoBodies {
    @OutboxHandler(queue = "orders", type = "a")
    void handle(Item one, Item other) {}
  }

  static class TwoDeliveries {
    @OutboxHandler(queue = "orders", type = "a")
    void handle(Delivery one, Delivery other) {}
  }

  static class DroppedResult {
    @OutboxHandler(queue = "orders", type = "a")
    String handle(Item item) {
      return "done";
    }
  }

  static class TypedRest {
    @OutboxHandler(queue = "orders")
    void handle(Item item) {}
  }

  static class UnknownType<T> {
    @OutboxHandler(queue = "orders", type = "a")
    void handle(T body) {}
  }

  @Test
  void refusesMethodsThatBreakARuleAndSaysWhich() {
    refuses(
        NoBody.class,
        "NoBody.handle takes nothing; it must take a body, a Delivery, or one of each");
    refuses(TwoBodies.class, "TwoBodies.handle takes two bodies");
    refuses(TwoDeliveries.class, "TwoDeliveries.handle takes two deliveries; it must take a body");
    refuses(
        DroppedResult.class,
        "DroppedResult.handle returns java.lang.String; it may return nothing, an Outcome");
    refuses(TypedRest.class, "TypedRest.handle handles all types", "must be a Payload");
    refuses(UnknownType.class, "UnknownType.handle takes a body whose type is not known");
  }

  static class NoQueue {
    @OutboxHandler(queue = " ", type = "a")
    void handle(Item item) {}
  }

  static class NoType {
    @OutboxHandler(queue = "orders", type = "")
    void handle(Item item) {}
  }

  static class LongName {
    @OutboxHandler(queue = "${shop.long}", type = "a")
    void handle(Item item) {}
  }

  static class OneTypeTwice {
    @OutboxHandler(
        queue = "orders",
        type = {"a", "a"})
    void handle(Item item) {}
  }

  static class NoSuchProperty {
    @OutboxHandler(queue = "orders", type = "${shop.typo}")
    void handle(Item item) {}
  }

  @Test
  void refusesNamesThatAreNoneAndSaysWhoseTheyAre() {
    refuses(NoQueue.class, "NoQueue.handle: queue is blank; ");
    refuses(NoType.class, "NoType.handle: type is blank; ");
    refuses(LongName.class, "LongName.handle: queue is 300 bytes long; ");
    refuses(OneTypeTwice.class, "OneTypeTwice.handle: type 'a' is named twice; name it once");
    refuses(
        NoSuchProperty.class,
        "NoSuchProperty.handle: type = \"${shop.typo}\" names a property that is not set; set it");
  }

  @Test
  void namesTheMethodAlsoWhereTheContextItselfRefusesAPlaceholder() {
    DefaultListableBeanFactory beans = new DefaultListableBeanFactory();
    beans.addEmbeddedValueResolver(
        text -> {
          throw new IllegalArgumentException("Could not resolve placeholder");
        });
    beans.registerBeanDefinition("handler", new RootBeanDefinition(NoSuchProperty.class));
    assertThatThrownBy(() -> HandlerMethods.of(beans))
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("NoSuchProperty.handle: queue = \"orders\"");
  }

  static class First {
    @OutboxHandler(queue = "orders", type = "a")
    void one(Item item) {}
  }

  static class Second {
    @OutboxHandler(
        queue = "orders",
        type = {"b", "a"})
    void other(Item item) {}
  }

  static class Rest {
    @OutboxHandler(queue = "orders")
    void one(Payload payload) {}

    @OutboxHandler(queue = "orders")
    void other(Delivery delivery) {}
  }

  @Test
  void refusesTwoMethodsForOneTypeAndNamesBoth() {
    assertThatThrownBy(() -> of(First.class, Second.class))
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("First.one")
        .hasMessageContaining("Second.other both handle type 'a' of queue 'orders'");
    refuses(Rest.class, "Rest.one", "Rest.other", "all other types of queue 'orders'");
  }

  abstract static class Generic<T> {
    @OutboxHandler(queue = "orders", type = "a")
    public void handle(T body) {}
  }

  static class OfItems extends Generic<List<Item>> {}

  @Test
  void knowsTheTypeThatASubclassGivesToAVariable() {
    assertThat(of(OfItems.class).get("orders")).hasSize(1);
  }

  interface Handles {
    void handle(Item item);
  }

  static class Hidden implements Handles {
    @Override
    public void handle(Item item) {}

    @OutboxHandler(queue = "orders", type = "a")
    public void other(Item item) {}
  }

  @Test
  void refusesAMethodThatAProxyOfInterfacesHides() {
    ProxyFactory proxy = new ProxyFactory(new Hidden());
    proxy.setInterfaces(Handles.class);
    Object bean = proxy.getProxy();
    try (AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext()) {
      context.registerBean("hidden", Object.class, () -> bean);
      context.refresh();
      assertThatThrownBy(() -> HandlerMethods.of(context.getBeanFactory()))
          .isInstanceOf(OutboxException.class)
          .hasMessageContaining("Hidden.other cannot be called on the bean's proxy");
    }
  }

  static class AckedTooEarly {
    @Async
    @OutboxHandler(queue = "orders", type = "a")
    void handle(Item item) {}
  }

  @Async
  static class AsyncClass {
    @OutboxHandler(queue = "orders", type = "a")
    Outcome handle(Item item) {
      return Outcome.ack();
    }
  }

  static class AsyncStage {
    @Async
    @OutboxHandler(queue = "orders", type = "a")
    CompletableFuture<Void> handle(Item item) {
      return CompletableFuture.completedFuture(null);
    }
  }

  @Test
  void refusesAnAsyncMethodThatDoesNotSayWhenItIsDone() {
    refuses(AckedTooEarly.class, "acked before it has run", "return a CompletableFuture");
    refuses(AsyncClass.class, "AsyncClass.handle is @Async", "return a CompletableFuture");
    assertThat(of(AsyncStage.class)).containsOnlyKeys("orders");
  }

  static class TransactionalStage {
    @OutboxHandler(queue = "orders", type = "a", transactional = true)
    CompletionStage<Void> handle(Item item) {
      return CompletableFuture.completedFuture(null);
    }
  }

  static class TransactionalAsync {
    @Async
    @OutboxHandler(queue = "orders", type = "a", transactional = true)
    void handle(Item item) {}
  }

  static class InItsOwnTransaction {
    @Transactional(propagation = Propagation.REQUIRES_NEW)
    @OutboxHandler(queue = "orders", type = "a", transactional = true)
    void handle(Item item) {}
  }

  @Transactional(propagation = Propagation.NOT_SUPPORTED)
  static class OutsideOfAny {
    @OutboxHandler(queue = "orders", type = "a", transactional = true)
    void handle(Item item) {}
  }

  static class Joining {
    @Transactional
    @OutboxHandler(queue = "orders", type = "a", transactional = true)
    Outcome handle(Item item) {
      return Outcome.ack();
    }
  }

  @Test
  void refusesATransactionalMethodThatWouldNotEndWithItsTransaction() {
    refuses(TransactionalStage.class, "returns java.util.concurrent.CompletionStage", "an Outcome");
    refuses(TransactionalAsync.class, "TransactionalAsync.handle is transactional and @Async");
    refuses(InItsOwnTransaction.class, "takes it out of the transaction", "be REQUIRED");
    refuses(OutsideOfAny.class, "takes it out of the transaction");
    assertThat(of(Joining.class)).containsOnlyKeys("orders");
  }

  static class WithoutBatch {
    @OutboxHandler(queue = "orders", type = "a")
    void handle(List<BatchMessage<Item>> items) {}
  }

  static class BatchOfBodies {
    @OutboxHandler(queue = "orders", type = "a", batch = 100)
    void handle(List<Item> items) {}
  }

  static class BatchWithDelivery {
    @OutboxHandler(queue = "orders", type = "a", batch = 100)
    void handle(List<BatchMessage<Item>> items, Delivery delivery) {}
  }

  static class BatchOfOne {
    @OutboxHandler(queue = "orders", type = "a", batch = 1)
    void handle(List<BatchMessage<Item>> items) {}
  }

  static class BatchOfAnyType {
    @OutboxHandler(queue = "orders", batch = 100)
    void handle(List<BatchMessage<Payload>> payloads) {}
  }

  static class BatchWithResult {
    @OutboxHandler(queue = "orders", type = "a", batch = 100)
    Outcome handle(List<BatchMessage<Item>> items) {
      return Outcome.ack();
    }
  }

  static class TransactionalBatch {
    @OutboxHandler(queue = "orders", type = "a", batch = 100, transactional = true)
    void handle(List<BatchMessage<Item>> items) {}
  }

  static class LongLinger {
    @OutboxHandler(queue = "orders", type = "a", batch = 100, linger = "2m")
    void handle(List<BatchMessage<Item>> items) {}
  }

  static class StrangeLinger {
    @OutboxHandler(queue = "orders", type = "a", batch = 100, linger = "soon")
    void handle(List<BatchMessage<Item>> items) {}
  }

  static class LingerAlone {
    @OutboxHandler(queue = "orders", type = "a", linger = "20ms")
    void handle(Item item) {}
  }

  static class LingerWithoutUnit {
    @OutboxHandler(queue = "orders", type = "a", batch = 100, linger = "20")
    void handle(List<BatchMessage<Item>> items) {}
  }

  @Test
  void refusesBatchesThatBreakARuleAndSaysWhich() {
    refuses(WithoutBatch.class, "takes several messages; say how many at most");
    refuses(BatchOfBodies.class, "must take a List<BatchMessage<T>>");
    refuses(BatchWithDelivery.class, "must take a List<BatchMessage<T>> and nothing else");
    refuses(BatchOfOne.class, "has a batch that is not allowed: most", "2");
    refuses(BatchOfAnyType.class, "name the types");
    refuses(
        BatchWithResult.class,
        "returns dev.outbox4j.Outcome; it may return nothing, a CompletionStage");
    refuses(TransactionalBatch.class, "has a batch and is transactional");
    refuses(LongLinger.class, "has a batch that is not allowed: linger");
    refuses(StrangeLinger.class, "has a batch that is not allowed: 'soon'");
    refuses(LingerAlone.class, "has a linger and no batch");
    refuses(
        LingerWithoutUnit.class, "has linger = \"20\", which has no unit; say which, such as 20ms");
  }

  abstract static class GenericBatch<T> {
    @OutboxHandler(queue = "orders", type = "a", batch = 100, linger = "${shop.linger}")
    public void handle(List<BatchMessage<T>> items) {}
  }

  static class BatchOfItems extends GenericBatch<List<Item>> {}

  @Test
  void takesBatchesAndTellsAotOfTheirBodies() throws NoSuchMethodException {
    assertThat(of(BatchOfItems.class)).containsOnlyKeys("orders");
    ReflectionHints hints = new ReflectionHints();
    new HandlerHints()
        .registerReflectionHints(hints, WithoutBatch.class.getDeclaredMethod("handle", List.class));
    assertThat(hints.getTypeHint(Item.class)).isNotNull();
    assertThat(hints.getTypeHint(BatchMessage.class)).isNull();
  }

  static class Publishing {
    @OutboxHandler(queue = "orders", type = "a")
    Flow.Publisher<Outcome> handle(Item item) {
      return subscriber -> {};
    }
  }

  @Test
  void takesAMethodThatReturnsAPublisher() {
    assertThat(of(Publishing.class)).containsOnlyKeys("orders");
  }

  static class Final {
    @OutboxHandler(queue = "orders", type = "a")
    public final void handle(Item item) {}
  }

  @Test
  void refusesAFinalMethodOnAProxyAndTakesItOnThePlainBean() {
    ProxyFactory proxy = new ProxyFactory(new Final());
    proxy.setProxyTargetClass(true);
    Object bean = proxy.getProxy();
    try (AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext()) {
      context.registerBean("final", Final.class, () -> (Final) bean);
      context.refresh();
      assertThatThrownBy(() -> HandlerMethods.of(context.getBeanFactory()))
          .isInstanceOf(OutboxException.class)
          .hasMessageContaining("Final.handle is final");
    }
    assertThat(of(Final.class)).containsOnlyKeys("orders");
  }

  @Test
  void tellsAotOfTheMethodAndOfItsBody() throws NoSuchMethodException {
    ReflectionHints hints = new ReflectionHints();
    new HandlerHints()
        .registerReflectionHints(
            hints, Good.class.getDeclaredMethod("severalTypes", Delivery.class, List.class));
    assertThat(hints.getTypeHint(Good.class)).isNotNull();
    assertThat(hints.getTypeHint(Item.class)).isNotNull();
    assertThat(hints.getTypeHint(Delivery.class)).isNull();
    assertThat(OutboxHandler.class.getAnnotation(Reflective.class).value())
        .containsExactly(HandlerHints.class);
  }

  /** Stands for a class of a library that a service has left out. */
  static final class Absent {}

  static class OfALibrary {
    void use(Absent absent) {}
  }

  static class HandlesAndMore {
    @OutboxHandler(queue = "orders", type = "a")
    void handle(Item item) {}

    void use(Absent absent) {}
  }

  /** Does not find {@link Absent}, and makes classes that name it anew. */
  private static final class WithoutAbsent extends ClassLoader {
    WithoutAbsent() {
      super(HandlerMethodsTest.class.getClassLoader());
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      if (name.equals(Absent.class.getName())) {
        throw new ClassNotFoundException(name);
      }
      if (!name.equals(OfALibrary.class.getName())
          && !name.equals(HandlesAndMore.class.getName())) {
        return super.loadClass(name, resolve);
      }
      try (InputStream file = getResourceAsStream(name.replace('.', '/') + ".class")) {
        byte[] bytes = Objects.requireNonNull(file, name).readAllBytes();
        return defineClass(name, bytes, 0, bytes.length);
      } catch (IOException e) {
        throw new ClassNotFoundException(name, e);
      }
    }
  }

  private static Map<String, List<HandlerMethod>> ofOneThatNamesAnAbsentClass(Class<?> user)
      throws ClassNotFoundException {
    Class<?> type = new WithoutAbsent().loadClass(user.getName());
    DefaultListableBeanFactory beans = new DefaultListableBeanFactory();
    beans.registerBeanDefinition("user", new RootBeanDefinition(type));
    return HandlerMethods.of(beans);
  }

  @Test
  void passesByABeanThatCannotBeLookedAtButNotAHandler() throws ClassNotFoundException {
    assertThat(ofOneThatNamesAnAbsentClass(OfALibrary.class)).isEmpty();
    assertThatThrownBy(() -> ofOneThatNamesAnAbsentClass(HandlesAndMore.class))
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining(HandlesAndMore.class.getName() + " has an @OutboxHandler")
        .hasMessageContaining(Absent.class.getSimpleName());
  }

  private static void refuses(Class<?> bean, String... texts) {
    assertThatThrownBy(() -> of(bean))
        .isInstanceOf(OutboxException.class)
        .hasMessageStartingWith("@OutboxHandler")
        .satisfies(refusal -> assertThat(refusal.getMessage()).contains(texts));
  }

  private static Map<String, List<HandlerMethod>> of(Class<?>... beans) {
    try (AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext()) {
      context
          .getEnvironment()
          .getPropertySources()
          .addFirst(
              new MapPropertySource(
                  "test",
                  Map.of(
                      "shop.queue",
                      "shop",
                      "shop.type",
                      "item.added",
                      "shop.long",
                      "x".repeat(300),
                      "shop.linger",
                      "20ms")));
      context.register(beans);
      context.refresh();
      return HandlerMethods.of(context.getBeanFactory());
    }
  }
}
