package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.File;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * A service that publishes, subscribes and keeps dead letters needs no optional library but pgjdbc.
 */
@ExtendWith(PostgresExtension.class)
class OptionalLibrariesIT {
  private static final String QUEUE = "optional-libraries";

  /** All that poms of the library call optional, with what comes with it, but pgjdbc. */
  private static final List<String> HIDDEN =
      List.of(
          "org.jooq.",
          "io.github.resilience4j.",
          "com.fasterxml.",
          "tools.jackson.",
          "io.micrometer.",
          "org.reactivestreams.",
          "reactor.",
          "io.r2dbc.",
          "io.netty.",
          "com.zaxxer.",
          "com.impossibl.");

  private final TestDatabase database;

  OptionalLibrariesIT(TestDatabase database) {
    this.database = database;
  }

  /** Runs in a class loader of its own, from the URL of a database until it is closed. */
  public static final class Service implements Consumer<String>, AutoCloseable {
    private OutboxSubscriber subscriber;

    @Override
    public void accept(String url) {
      PGSimpleDataSource source = new PGSimpleDataSource();
      source.setUrl(url);
      OutboxTable table = OutboxTable.named("outbox");
      subscriber =
          OutboxSubscriber.builder(QUEUE)
              .store(PostgresOutbox.on(source, table).store())
              .listen(PgjdbcListen.on(source))
              .deadLetters(DeadLetterQueue.in("outbox_dlq"))
              .on(
                  "t",
                  String.class,
                  (text, delivery) -> {
                    return text.equals("good") ? Outcome.ack() : Outcome.reject("not good");
                  })
              .build();
      subscriber.start();
      OutboxPublisher publisher = PostgresOutbox.publisher(table).build();
      try (Connection connection = source.getConnection()) {
        connection.setAutoCommit(false);
        for (String body : List.of("good", "bad")) {
          publisher.publish(connection, OutboxMessage.to(QUEUE).type("t").body(body).build());
        }
        connection.commit();
      } catch (SQLException e) {
        throw new IllegalStateException(e);
      }
    }

    @Override
    public void close() {
      subscriber.stop();
    }
  }

  @Test
  @SuppressWarnings("unchecked")
  void publishingSubscribingAndDeadLettersNeedNone() throws Exception {
    assertThat(Class.forName("org.jooq.DSLContext"))
        .as("to be hidden, it must be there")
        .isNotNull();
    try (URLClassLoader loader = withoutOptionalLibraries()) {
      for (String absent : List.of("org.jooq.DSLContext", "io.github.resilience4j.retry.Retry")) {
        assertThatThrownBy(() -> loader.loadClass(absent))
            .isInstanceOf(ClassNotFoundException.class);
      }
      Object service =
          loader.loadClass(Service.class.getName()).getDeclaredConstructor().newInstance();
      try (AutoCloseable open = (AutoCloseable) service) {
        assertThat(open.getClass()).isNotEqualTo(Service.class);
        ((Consumer<String>) service).accept(url());
        await().until(() -> count("outbox_dlq") == 1 && count("outbox") == 0);
      }
    }
  }

  private long count(String table) {
    return database.one(Long.class, "select count(*) from " + table + " where queue = ?", QUEUE);
  }

  private String url() {
    return "jdbc:postgresql://%s:%d/%s?user=%s&password=%s"
        .formatted(
            database.server().host(),
            database.server().port(),
            database.name(),
            database.server().user(),
            database.server().password());
  }

  private static URLClassLoader withoutOptionalLibraries() throws MalformedURLException {
    List<URL> urls = new ArrayList<>();
    for (String entry : System.getProperty("java.class.path").split(File.pathSeparator, -1)) {
      urls.add(new File(entry).toURI().toURL());
    }
    return new URLClassLoader(urls.toArray(URL[]::new), ClassLoader.getPlatformClassLoader()) {
      @Override
      protected Class<?> findClass(String name) throws ClassNotFoundException {
        if (HIDDEN.stream().anyMatch(name::startsWith)) {
          throw new ClassNotFoundException(name + " is hidden");
        }
        return super.findClass(name);
      }
    };
  }
}
