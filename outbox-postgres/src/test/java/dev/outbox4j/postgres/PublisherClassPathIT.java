package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import io.r2dbc.spi.ConnectionFactories;
import java.io.File;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.sql.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import reactor.core.publisher.Mono;

/** Each publisher works although the other one's libraries are not on the class path. */
@ExtendWith(PostgresExtension.class)
class PublisherClassPathIT {
  private final TestDatabase database;

  PublisherClassPathIT(TestDatabase database) {
    this.database = database;
  }

  /** Publishes over JDBC; loaded by a class loader of its own. */
  public static final class OverJdbc implements Function<Connection, Object> {
    @Override
    public Object apply(Connection connection) {
      return PostgresOutbox.publisher(OutboxTable.named("outbox"))
          .build()
          .publish(connection, OutboxMessage.to("jdbc").body("x").build())
          .rowId()
          .orElseThrow();
    }
  }

  /** Connects and publishes over R2DBC; loaded by a class loader of its own. */
  public static final class OverR2dbc implements Function<String, Object> {
    @Override
    public Object apply(String url) {
      ReactiveOutboxPublisher publisher =
          PostgresOutbox.publisher(OutboxTable.named("outbox")).allowAutoCommit().buildReactive();
      return Mono.usingWhen(
              ConnectionFactories.get(url).create(),
              connection ->
                  Mono.from(
                      publisher.publish(connection, OutboxMessage.to("r2dbc").body("x").build())),
              io.r2dbc.spi.Connection::close)
          .map(published -> published.rowId().orElseThrow())
          .block(Duration.ofSeconds(30));
    }
  }

  @Test
  @SuppressWarnings("unchecked")
  void jdbcNeedsNoReactor() throws Exception {
    // jOOQ itself brings the API of R2DBC and Reactive Streams
    try (URLClassLoader loader = without("reactor.", "io.r2dbc.postgresql.", "io.netty.");
        Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      assertThatThrownBy(() -> loader.loadClass(Mono.class.getName()))
          .isInstanceOf(ClassNotFoundException.class);
      var publish = (Function<Connection, Object>) instance(loader, OverJdbc.class);
      assertThat(publish.apply(connection)).isInstanceOf(Long.class);
      connection.commit();
    }
    assertThat(database.list(String.class, "select queue from outbox")).contains("jdbc");
  }

  @Test
  @SuppressWarnings("unchecked")
  void r2dbcNeedsNoJdbcDriver() throws Exception {
    String url =
        "r2dbc:postgresql://%s:%s@%s:%d/%s"
            .formatted(
                database.server().user(),
                database.server().password(),
                database.server().host(),
                database.server().port(),
                database.name());
    ClassLoader before = Thread.currentThread().getContextClassLoader();
    try (URLClassLoader loader = without("org.postgresql.", "com.impossibl.", "com.zaxxer.")) {
      Thread.currentThread().setContextClassLoader(loader);
      assertThatThrownBy(() -> loader.loadClass("org.postgresql.Driver"))
          .isInstanceOf(ClassNotFoundException.class);
      var publish = (Function<String, Object>) instance(loader, OverR2dbc.class);
      assertThat(publish.apply(url)).isInstanceOf(Long.class);
    } finally {
      Thread.currentThread().setContextClassLoader(before);
    }
    assertThat(database.list(String.class, "select queue from outbox")).contains("r2dbc");
  }

  private static Object instance(ClassLoader loader, Class<?> type) throws Exception {
    return loader.loadClass(type.getName()).getDeclaredConstructor().newInstance();
  }

  private static URLClassLoader without(String... hidden) {
    List<URL> urls = new ArrayList<>();
    for (String entry : System.getProperty("java.class.path").split(File.pathSeparator, -1)) {
      try {
        urls.add(new File(entry).toURI().toURL());
      } catch (MalformedURLException e) {
        throw new AssertionError(e);
      }
    }
    return new URLClassLoader(urls.toArray(URL[]::new), ClassLoader.getPlatformClassLoader()) {
      @Override
      protected Class<?> findClass(String name) throws ClassNotFoundException {
        if (Arrays.stream(hidden).anyMatch(name::startsWith)) {
          throw new ClassNotFoundException(name + " is hidden");
        }
        return super.findClass(name);
      }
    };
  }
}
