package dev.outbox4j.postgres;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.jooq.JooqOutboxPublisher;
import dev.outbox4j.postgres.testing.TestDatabase;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.postgresql.api.PostgresqlConnection;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import org.jooq.SQLDialect;
import org.jooq.impl.DSL;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The ways to publish, each in a transaction of its own that commits. */
enum PublishApi {
  JDBC {
    @Override
    List<Published> publish(
        TestDatabase database,
        PostgresOutbox.PublisherBuilder builder,
        Collection<OutboxMessage> messages) {
      try (Connection connection = database.plain().getConnection()) {
        connection.setAutoCommit(false);
        List<Published> published = builder.build().publish(connection, messages);
        connection.commit();
        return published;
      } catch (SQLException e) {
        throw new AssertionError(e);
      }
    }

    @Override
    boolean cancel(TestDatabase database, OutboxTable table, String queue, String timerId) {
      try (Connection connection = database.plain().getConnection()) {
        connection.setAutoCommit(false);
        boolean cancelled =
            PostgresOutbox.publisher(table).build().cancelTimer(connection, queue, timerId);
        connection.commit();
        return cancelled;
      } catch (SQLException e) {
        throw new AssertionError(e);
      }
    }
  },

  JOOQ {
    @Override
    List<Published> publish(
        TestDatabase database,
        PostgresOutbox.PublisherBuilder builder,
        Collection<OutboxMessage> messages) {
      return DSL.using(database.plain(), SQLDialect.POSTGRES)
          .transactionResult(tx -> JooqOutboxPublisher.of(builder.build()).publish(tx, messages));
    }

    @Override
    boolean cancel(TestDatabase database, OutboxTable table, String queue, String timerId) {
      return DSL.using(database.plain(), SQLDialect.POSTGRES)
          .transactionResult(
              tx ->
                  JooqOutboxPublisher.of(PostgresOutbox.publisher(table).build())
                      .cancelTimer(tx, queue, timerId));
    }
  },

  R2DBC {
    @Override
    List<Published> publish(
        TestDatabase database,
        PostgresOutbox.PublisherBuilder builder,
        Collection<OutboxMessage> messages) {
      ReactiveOutboxPublisher publisher = builder.buildReactive();
      return inTransaction(
          database, connection -> Flux.from(publisher.publish(connection, messages)).collectList());
    }

    @Override
    boolean cancel(TestDatabase database, OutboxTable table, String queue, String timerId) {
      ReactiveOutboxPublisher publisher = PostgresOutbox.publisher(table).buildReactive();
      return inTransaction(
          database, connection -> Mono.from(publisher.cancelTimer(connection, queue, timerId)));
    }
  };

  abstract List<Published> publish(
      TestDatabase database,
      PostgresOutbox.PublisherBuilder builder,
      Collection<OutboxMessage> messages);

  abstract boolean cancel(TestDatabase database, OutboxTable table, String queue, String timerId);

  List<Published> publish(TestDatabase database, OutboxMessage... messages) {
    return publish(database, PostgresOutbox.publisher(database.table()), List.of(messages));
  }

  static PostgresqlConnectionFactory r2dbc(TestDatabase database) {
    return new PostgresqlConnectionFactory(
        PostgresqlConnectionConfiguration.builder()
            .host(database.server().host())
            .port(database.server().port())
            .username(database.server().user())
            .password(database.server().password())
            .database(database.name())
            .build());
  }

  private static <T> T inTransaction(
      TestDatabase database, java.util.function.Function<PostgresqlConnection, Mono<T>> work) {
    return Mono.usingWhen(
            r2dbc(database).create(),
            connection ->
                connection
                    .beginTransaction()
                    .then(work.apply(connection))
                    .flatMap(result -> connection.commitTransaction().thenReturn(result)),
            PostgresqlConnection::close)
        .block(Duration.ofSeconds(60));
  }
}
