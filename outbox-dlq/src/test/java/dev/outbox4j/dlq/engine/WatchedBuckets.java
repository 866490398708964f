package dev.outbox4j.dlq.engine;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.spi.BucketStore;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Optional;
import java.util.concurrent.Callable;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * A store whose operations on ordered queues, its acks, and its forgetting, a test watches or lets
 * fail.
 */
final class WatchedBuckets {
  private WatchedBuckets() {}

  /** What is done around a call. */
  interface Around {
    Object call(String method, Object argument, Callable<Object> real) throws Exception;
  }

  static PostgresStore of(DataSource pool, OutboxTable table, Around around) {
    PostgresStore real = PostgresOutbox.on(pool, table).store();
    BucketStore buckets = real.buckets().orElseThrow();
    BucketStore watched = proxy(BucketStore.class, watching(buckets, around));
    Call watchedReal = watching(real, around);
    return proxy(
        PostgresStore.class,
        (method, args) ->
            switch (method.getName()) {
              case "buckets" -> Optional.of(watched);
              case "ack", "forget" -> watchedReal.on(method, args);
              default -> invoke(real, method, args);
            });
  }

  private static Call watching(Object target, Around around) {
    return (method, args) ->
        around.call(
            method.getName(), args == null ? null : args[0], () -> invoke(target, method, args));
  }

  private interface Call {
    Object on(Method method, Object @Nullable [] args) throws Exception;
  }

  private static <T> T proxy(Class<T> type, Call call) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (proxy, method, args) -> call.on(method, args)));
  }

  private static Object invoke(Object target, Method method, Object @Nullable [] args)
      throws Exception {
    try {
      return method.invoke(target, args);
    } catch (InvocationTargetException thrown) {
      if (thrown.getCause() instanceof Error error) {
        throw error;
      }
      throw (Exception) thrown.getCause();
    }
  }
}
