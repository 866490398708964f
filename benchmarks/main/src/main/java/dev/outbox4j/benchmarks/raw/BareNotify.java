package dev.outbox4j.benchmarks.raw;

import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Consuming;
import dev.outbox4j.benchmarks.spi.Payloads;
import dev.outbox4j.benchmarks.spi.Publisher;
import dev.outbox4j.benchmarks.spi.Publishing;
import dev.outbox4j.benchmarks.spi.Sink;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.postgresql.api.PostgresqlConnection;
import java.net.URI;
import java.sql.PreparedStatement;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/** NOTIFY to the callback of a LISTEN over R2DBC, with no table at all. */
public final class BareNotify implements Consuming, Publishing {
  private @Nullable PostgresqlConnection listener;

  /** Made by the service loader. */
  public BareNotify() {}

  @Override
  public String name() {
    return "raw-notify";
  }

  @Override
  public String contract() {
    return "a notification, nothing kept";
  }

  @Override
  public void prepare(Bench bench) {
    // it needs no table
  }

  /** Returns R2DBC connections to the run's database. */
  public static PostgresqlConnectionFactory r2dbc(Bench bench) {
    URI uri = URI.create(bench.url().substring("jdbc:".length()));
    return new PostgresqlConnectionFactory(
        PostgresqlConnectionConfiguration.builder()
            .host(uri.getHost())
            .port(uri.getPort())
            .database(uri.getPath().substring(1))
            .username(bench.user())
            .password(bench.password())
            .applicationName("contestant")
            .build());
  }

  @Override
  public void start(Bench bench, Sink sink) {
    PostgresqlConnection connection = r2dbc(bench).create().block();
    listener = connection;
    if (connection == null) {
      throw new IllegalStateException("no connection");
    }
    connection
        .getNotifications()
        .subscribe(
            notification ->
                sink.handle(
                    Payloads.of(Long.parseLong(String.valueOf(notification.getParameter())), 8)));
    connection
        .createStatement("listen bare")
        .execute()
        .flatMap(result -> Mono.from(result.getRowsUpdated()))
        .blockLast();
  }

  @Override
  public void stop() {
    if (listener != null) {
      listener.close().block();
    }
  }

  @Override
  public Publisher publisher(Bench bench) {
    return (transaction, payloads, delay) -> {
      try (PreparedStatement statement =
          transaction.prepareStatement("select pg_notify('bare', ?)")) {
        for (byte[] payload : payloads) {
          statement.setString(1, Long.toString(Payloads.sequence(payload)));
          statement.execute();
        }
      }
    };
  }
}
