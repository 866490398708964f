package dev.outbox4j.spring;

import dev.outbox4j.Batch;
import dev.outbox4j.BatchMessage;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.Transactional;
import dev.outbox4j.TypeRef;
import dev.outbox4j.internal.reactive.PublisherResults;
import dev.outbox4j.spi.HandlerTransactions;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.lang.reflect.Type;
import java.sql.Connection;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.aop.support.AopUtils;
import org.springframework.boot.convert.DurationStyle;
import org.springframework.core.GenericTypeResolver;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.scheduling.annotation.Async;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.annotation.AnnotationTransactionAttributeSource;
import org.springframework.transaction.interceptor.RuleBasedTransactionAttribute;
import org.springframework.transaction.interceptor.TransactionAttribute;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/** A method that handles messages, on its bean. Immutable. */
final class HandlerMethod {
  private static final Logger log = LoggerFactory.getLogger(HandlerMethod.class);

  /** Where a method does not run in the transaction of its caller. */
  private static final Set<Integer> OUTSIDE =
      Set.of(
          TransactionDefinition.PROPAGATION_REQUIRES_NEW,
          TransactionDefinition.PROPAGATION_NOT_SUPPORTED,
          TransactionDefinition.PROPAGATION_NEVER);

  private final String name;
  private final List<String> types;
  private final Object bean;
  private final Method invocable;
  private final TypeRef<Object> body;
  private final boolean[] takesDelivery;
  private final boolean returnsNothing;
  private final boolean transactional;
  private final @Nullable Batch batch;

  /**
   * Checks the method.
   *
   * @param linger the annotation's, with its placeholders resolved
   * @param method as the bean's class declares it
   * @param bean the bean, or the proxy that stands for it
   */
  HandlerMethod(
      OutboxHandler handler,
      List<String> types,
      String linger,
      Method method,
      Class<?> beanClass,
      Object bean) {
    this.name = ClassUtils.getUserClass(beanClass).getName() + "." + method.getName();
    this.types = types;
    this.bean = bean;
    this.takesDelivery = new boolean[method.getParameterCount()];
    this.returnsNothing = method.getReturnType() == void.class;
    this.transactional = handler.transactional();
    this.batch = batch(handler, linger);
    this.body = body(batch == null ? bodyType(method, beanClass) : elementType(method, beanClass));
    if (batch != null) {
      requireBatch(method.getReturnType());
    } else if (transactional) {
      requireEndInTransaction(method, beanClass);
    } else {
      requireResult(method.getReturnType());
    }
    requireResultOfAsync(method, beanClass);
    requireProxied(method);
    if (!transactional) {
      warnOfOwnTransaction(method, beanClass);
    }
    if (batch == null && types.isEmpty() && body.type() != Payload.class) {
      throw fault(
          "handles all types that have no method of their own, so its body must be a Payload, not "
              + body.type().getTypeName()
              + "; name the types, or take a Payload");
    }
    this.invocable = invocable(method, bean);
    ReflectionUtils.makeAccessible(invocable);
  }

  private Type bodyType(Method method, Class<?> beanClass) {
    Type type = null;
    int deliveries = 0;
    Parameter[] parameters = method.getParameters();
    for (int i = 0; i < parameters.length; i++) {
      takesDelivery[i] = parameters[i].getType() == Delivery.class;
      if (takesDelivery[i]) {
        deliveries++;
      } else if (BatchParameter.isMeant(parameters[i].getParameterizedType())) {
        throw fault("takes several messages; say how many at most, such as batch = 100");
      } else if (type == null) {
        type = GenericTypeResolver.resolveType(parameters[i].getParameterizedType(), beanClass);
      } else {
        throw fault("takes two bodies; it may take one body and a Delivery");
      }
    }
    if (deliveries > 1 || (type == null && deliveries == 0)) {
      throw fault(
          (deliveries == 0 ? "takes nothing" : "takes two deliveries")
              + "; it must take a body, a Delivery, or one of each");
    }
    if (type == OutboxMessage.class) {
      throw fault(
          "takes an OutboxMessage, which is what publishers make; take the body, and a Delivery for"
              + " type, key and headers");
    }
    return type == null ? Payload.class : type;
  }

  private @Nullable Batch batch(OutboxHandler handler, String linger) {
    if (handler.batch() == 0) {
      if (!linger.isEmpty()) {
        throw fault("has a linger and no batch; say how many messages it takes, or drop linger");
      }
      return null;
    }
    if (linger.matches("\\d+")) {
      throw fault(
          "has linger = \"%s\", which has no unit; say which, such as %sms"
              .formatted(linger, linger));
    }
    try {
      Batch most = Batch.of(handler.batch());
      return linger.isEmpty() ? most : most.linger(DurationStyle.detectAndParse(linger));
    } catch (IllegalArgumentException e) {
      throw fault("has a batch that is not allowed: " + e.getMessage());
    }
  }

  private Type elementType(Method method, Class<?> beanClass) {
    Type element = BatchParameter.elementOf(method, beanClass);
    if (element == null) {
      throw fault(
          "has a batch, so it must take a List<BatchMessage<T>> and nothing else: each message has"
              + " a delivery of its own");
    }
    return element;
  }

  private void requireBatch(Class<?> result) {
    if (types.isEmpty()) {
      throw fault("has a batch, which is of one type; name the types");
    }
    if (!returnsNothing && !endsLater(result)) {
      throw fault(
          "has a batch and returns "
              + result.getName()
              + "; it may return nothing, a CompletionStage or a Publisher: each message's delivery"
              + " takes what becomes of it");
    }
    if (transactional) {
      throw fault(
          "has a batch and is transactional; drop one of the two, as a transactional method settles"
              + " one message");
    }
  }

  @SuppressWarnings("unchecked") // what the codec gives is of the type
  private TypeRef<Object> body(Type type) {
    try {
      return (TypeRef<Object>) TypeRef.of(type);
    } catch (IllegalArgumentException e) {
      throw fault(
          "takes a body whose type is not known ("
              + e.getMessage()
              + "); take a class, or a type whose arguments are classes, such as List<Item>");
    }
  }

  private void requireResult(Class<?> result) {
    if (!returnsNothing && !Outcome.class.isAssignableFrom(result) && !endsLater(result)) {
      throw fault(
          "returns "
              + result.getName()
              + "; it may return nothing, an Outcome, a CompletionStage or a Publisher");
    }
  }

  private static boolean endsLater(Class<?> result) {
    return CompletionStage.class.isAssignableFrom(result) || PublisherResults.isPublisher(result);
  }

  private void requireEndInTransaction(Method method, Class<?> beanClass) {
    if (isAsync(method, beanClass)
        || !(returnsNothing || Outcome.class.isAssignableFrom(method.getReturnType()))) {
      throw fault(
          "is transactional and "
              + (isAsync(method, beanClass)
                  ? "@Async"
                  : "returns " + method.getReturnType().getName())
              + "; its transaction ends when it returns, so it may return nothing or an Outcome, and"
              + " must do its work on the thread that calls it");
    }
    TransactionAttribute own = ownTransaction(method, beanClass);
    if (own != null && OUTSIDE.contains(own.getPropagationBehavior())) {
      throw fault(
          "is transactional, and its @Transactional takes it out of the transaction that acks its"
              + " message; drop @Transactional, or let its propagation be REQUIRED");
    }
  }

  private static @Nullable TransactionAttribute ownTransaction(Method method, Class<?> beanClass) {
    return new AnnotationTransactionAttributeSource(false)
        .getTransactionAttribute(method, beanClass);
  }

  /** What Spring does by its rules, and an author of a handler hardly means. */
  private void warnOfOwnTransaction(Method method, Class<?> beanClass) {
    TransactionAttribute own = ownTransaction(method, beanClass);
    if (own == null) {
      return;
    }
    if (own.isReadOnly()) {
      log.warn(
          "{} runs in @Transactional(readOnly = true): with JPA nothing is written there, and the"
              + " message is acked all the same; put @Transactional on the method",
          this);
    }
    boolean anyRule =
        own instanceof RuleBasedTransactionAttribute rules && !rules.getRollbackRules().isEmpty();
    Arrays.stream(method.getExceptionTypes())
        .filter(HandlerMethod::isChecked)
        .filter(type -> !anyRule)
        .findFirst()
        .ifPresent(
            type ->
                log.warn(
                    "{} declares {}, after which its @Transactional commits what it wrote, each"
                        + " time it is retried; set rollbackFor = Exception.class, or transactional ="
                        + " true on @OutboxHandler",
                    this,
                    type.getName()));
  }

  private static boolean isChecked(Class<?> type) {
    return !RuntimeException.class.isAssignableFrom(type) && !Error.class.isAssignableFrom(type);
  }

  private static boolean isAsync(Method method, Class<?> beanClass) {
    return AnnotatedElementUtils.hasAnnotation(method, Async.class)
        || AnnotatedElementUtils.hasAnnotation(beanClass, Async.class);
  }

  private void requireResultOfAsync(Method method, Class<?> beanClass) {
    if (isAsync(method, beanClass)
        && !CompletableFuture.class.isAssignableFrom(method.getReturnType())) {
      throw fault(
          "is @Async and returns "
              + method.getReturnType().getName()
              + (returnsNothing
                  ? ", so its messages would be acked before it has run"
                  : ", which Spring refuses at each call")
              + "; return a CompletableFuture, or drop @Async");
    }
  }

  private void requireProxied(Method method) {
    if (Modifier.isFinal(method.getModifiers())
        && !Modifier.isStatic(method.getModifiers())
        && AopUtils.isCglibProxy(bean)) {
      throw fault(
          "is final, so it would run on the bean's proxy, without the bean's fields and without"
              + " what the proxy adds, such as transactions; make it and its class open, that is,"
              + " drop 'final'");
    }
  }

  private Method invocable(Method method, Object target) {
    try {
      return AopUtils.selectInvocableMethod(method, target.getClass());
    } catch (IllegalStateException e) {
      throw fault(
          "cannot be called on the bean's proxy ("
              + e.getMessage()
              + "); make it public, and a method of the interface if the proxy is one of interfaces");
    }
  }

  /** The types it handles; none: all that have no method of their own. */
  List<String> types() {
    return types;
  }

  /** Adds itself to the subscriber of its queue. */
  void addTo(
      OutboxSubscriber.Builder builder, Supplier<HandlerTransactions<Connection>> transactions) {
    if (batch != null) {
      for (String type : types) {
        addTo(builder, type, batch);
      }
      return;
    }
    if (transactional) {
      addTo(builder, transactional(transactions));
      return;
    }
    if (types.isEmpty()) {
      if (returnsNothing) {
        builder.otherwise(
            (Payload payload, Delivery delivery) -> {
              invoke(payload, delivery);
            });
      } else {
        builder.otherwise(
            (Payload payload, Delivery delivery) -> {
              return invoke(payload, delivery);
            });
      }
    }
    for (String type : types) {
      if (returnsNothing) {
        builder.on(
            type,
            body,
            (Object value, Delivery delivery) -> {
              invoke(value, delivery);
            });
      } else {
        builder.on(
            type,
            body,
            (Object value, Delivery delivery) -> {
              return invoke(value, delivery);
            });
      }
    }
  }

  private void addTo(OutboxSubscriber.Builder builder, String type, Batch most) {
    if (returnsNothing) {
      builder.onBatch(
          type,
          body,
          most,
          (List<BatchMessage<Object>> messages) -> {
            invokeWith(messages);
          });
    } else {
      builder.onBatch(
          type,
          body,
          most,
          (List<BatchMessage<Object>> messages) -> {
            return invokeWith(messages);
          });
    }
  }

  private HandlerTransactions<Connection> transactional(
      Supplier<HandlerTransactions<Connection>> transactions) {
    try {
      return transactions.get();
    } catch (OutboxException none) {
      throw fault("is transactional, and " + none.getMessage());
    }
  }

  private void addTo(
      OutboxSubscriber.Builder builder, HandlerTransactions<Connection> transactions) {
    if (types.isEmpty()) {
      builder.otherwise(this.<Payload>in(transactions));
    }
    for (String type : types) {
      builder.on(type, body, this.<Object>in(transactions));
    }
  }

  private <T> Transactional<T> in(HandlerTransactions<Connection> transactions) {
    return returnsNothing
        ? Transactional.of(
            transactions,
            (T value, Delivery delivery, Connection connection) -> {
              invoke(value, delivery);
            })
        : Transactional.of(
            transactions,
            (T value, Delivery delivery, Connection connection) -> {
              return (Outcome) invoke(value, delivery);
            });
  }

  @SuppressWarnings("NullAway") // a method that returns null has failed, and the subscriber says so
  private Object invoke(Object value, Delivery delivery) throws Exception {
    Object[] arguments = new Object[takesDelivery.length];
    for (int i = 0; i < arguments.length; i++) {
      arguments[i] = takesDelivery[i] ? delivery : value;
    }
    return invokeWith(arguments);
  }

  @SuppressWarnings("NullAway") // see above
  private Object invokeWith(Object... arguments) throws Exception {
    try {
      Object result = invocable.invoke(bean, arguments);
      if (result == null && !returnsNothing) {
        throw fault("returned null; return what it declares, or let it return nothing");
      }
      return result;
    } catch (InvocationTargetException thrown) {
      if (thrown.getCause() instanceof Exception failure) {
        throw failure;
      }
      if (thrown.getCause() instanceof Error error) {
        throw error;
      }
      throw thrown;
    }
  }

  private OutboxException fault(String what) {
    return new OutboxException("@OutboxHandler " + name + " " + what);
  }

  @Override
  public String toString() {
    return "@OutboxHandler " + name;
  }
}
