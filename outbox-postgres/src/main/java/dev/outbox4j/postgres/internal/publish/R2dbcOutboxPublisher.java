package dev.outbox4j.postgres.internal.publish;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.Published;
import dev.outbox4j.postgres.ReactiveOutboxPublisher;
import dev.outbox4j.postgres.internal.SqlFaults;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.R2dbcException;
import io.r2dbc.spi.Readable;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Statement;
import java.sql.SQLException;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Publishes over R2DBC. The only class of the publishers that needs Reactor and R2DBC. */
public final class R2dbcOutboxPublisher implements ReactiveOutboxPublisher {
  private final PublisherSettings settings;
  private final BodyEncoder encoder;
  private final PublishSql sql;

  /** Renders the statements; does no I/O. */
  public R2dbcOutboxPublisher(PublisherSettings settings) {
    this.settings = settings;
    this.encoder = new BodyEncoder(settings.codec());
    this.sql = PublishSql.forR2dbc(settings.table(), settings.notifyMode());
  }

  @Override
  public Mono<Published> publish(Connection connection, OutboxMessage message) {
    return publish(connection, List.of(message)).single();
  }

  @Override
  public Flux<Published> publish(Connection connection, Collection<OutboxMessage> messages) {
    Objects.requireNonNull(connection, "connection");
    List<OutboxMessage> list = List.copyOf(messages);
    return Flux.defer(
            () -> {
              requireTransaction(connection, "publish");
              if (list.isEmpty()) {
                return Flux.<Published>empty();
              }
              return PublisherSettings.isSingle(list)
                  ? insert(connection, EncodedMessage.of(list.get(0), encoder))
                  : insert(connection, new PublishBatch(list, encoder));
            })
        .onErrorMap(R2dbcException.class, e -> explain("publish", e));
  }

  @Override
  public Mono<Boolean> cancelTimer(Connection connection, String queue, String timerId) {
    Objects.requireNonNull(connection, "connection");
    OutboxMessage.to(queue).timerId(timerId); // the rules that publishing has
    return Mono.defer(
            () -> {
              requireTransaction(connection, "cancelTimer");
              return Flux.from(
                      connection
                          .createStatement(sql.cancelTimer())
                          .bind(0, queue)
                          .bind(1, timerId)
                          .execute())
                  .concatMap(Result::getRowsUpdated)
                  .reduce(0L, Long::sum)
                  .map(deleted -> deleted > 0);
            })
        .onErrorMap(R2dbcException.class, e -> explain("cancelTimer", e));
  }

  private Flux<Published> insert(Connection connection, EncodedMessage message) {
    PublishBatch.requireRoom(message.payload().size(), 1);
    Statement statement =
        connection
            .createStatement(sql.single())
            .bind(0, message.payload().bytes())
            .bind(1, message.queue())
            .bind(4, message.headers())
            .bind(6, message.delayOrZero());
    bind(statement, 2, message.type());
    bind(statement, 3, message.orderingKey());
    bind(statement, 5, message.deliverAt());
    return Flux.from(statement.execute())
        .concatMap(result -> result.map(row -> Objects.requireNonNull(row.get(0, Long.class))))
        .collectList()
        .map(PublishBatch::single)
        .flux();
  }

  private static void bind(Statement statement, int index, @Nullable String value) {
    if (value == null) {
      statement.bindNull(index, String.class);
    } else {
      statement.bind(index, value);
    }
  }

  private Flux<Published> insert(Connection connection, PublishBatch batch) {
    Statement statement =
        connection
            .createStatement(sql.of(batch))
            .bind(0, batch.payloads)
            .bind(1, batch.firstBytes)
            .bind(2, batch.sizes)
            .bind(3, batch.queues)
            .bind(4, batch.types)
            .bind(5, batch.orderingKeys)
            .bind(6, batch.timerIds)
            .bind(7, batch.headers)
            .bind(8, batch.delays)
            .bind(9, batch.deliverAts)
            .bind(10, batch.expiries)
            .bind(11, batch.expiresAts);
    if (batch.hasDedupKeys()) {
      statement.bind(12, batch.dedupKeys).bind(13, batch.inFlight).bind(14, batch.completed);
    }
    if (batch.replacesTimers()) {
      statement.bind(12, batch.replacedQueues).bind(13, batch.replacedTimers);
    }
    if (settings.asksForFirstDue(batch)) {
      PublishBatch.FirstDue firstDue = batch.firstDue();
      statement.bind(12, firstDue.queues).bind(13, firstDue.delays).bind(14, firstDue.deliverAts);
    }
    return Flux.from(statement.execute())
        .concatMap(result -> result.map(row -> row(row, batch.hasDedupKeys())))
        .collectList()
        .flatMapIterable(batch::results);
  }

  private static PublishBatch.Inserted row(Readable row, boolean placed) {
    return new PublishBatch.Inserted(
        Objects.requireNonNull(row.get(0, Long.class)),
        row.get(1, String.class),
        row.get(2, String.class),
        placed ? Objects.requireNonNull(row.get(3, Integer.class)) : 0);
  }

  private void requireTransaction(Connection connection, String operation) {
    if (!settings.autoCommitAllowed() && connection.isAutoCommit()) {
      throw settings.autoCommitRefused(operation);
    }
  }

  private Throwable explain(String operation, R2dbcException e) {
    return SqlFaults.explain(
        operation,
        settings.table(),
        new SQLException(e.getMessage(), e.getSqlState(), e.getErrorCode(), e));
  }
}
