package dev.outbox4j.postgres.internal.publish;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.Published;
import dev.outbox4j.postgres.internal.SqlFaults;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Objects;

/** Publishes over JDBC. */
public final class JdbcOutboxPublisher implements OutboxPublisher {
  private final PublisherSettings settings;
  private final BodyEncoder encoder;
  private final PublishSql sql;

  /** Renders the statements; does no I/O. */
  public JdbcOutboxPublisher(PublisherSettings settings) {
    this.settings = settings;
    this.encoder = new BodyEncoder(settings.codec());
    this.sql = PublishSql.forJdbc(settings.table(), settings.notifyMode());
  }

  @Override
  public Published publish(Connection connection, OutboxMessage message) {
    return publish(connection, List.of(message)).get(0);
  }

  @Override
  public List<Published> publish(Connection connection, Collection<OutboxMessage> messages) {
    Objects.requireNonNull(connection, "connection");
    List<OutboxMessage> list = List.copyOf(messages);
    requireTransaction(connection, "publish");
    if (list.isEmpty()) {
      return List.of();
    }
    if (PublisherSettings.isSingle(list)) {
      return List.of(insert(connection, EncodedMessage.of(list.get(0), encoder)));
    }
    PublishBatch batch = new PublishBatch(list, encoder);
    return batch.results(insert(connection, batch));
  }

  @Override
  public boolean cancelTimer(Connection connection, String queue, String timerId) {
    Objects.requireNonNull(connection, "connection");
    OutboxMessage.to(queue).timerId(timerId); // the rules that publishing has
    requireTransaction(connection, "cancelTimer");
    try (PreparedStatement statement = connection.prepareStatement(sql.cancelTimer())) {
      statement.setString(1, queue);
      statement.setString(2, timerId);
      return statement.executeUpdate() > 0;
    } catch (SQLException e) {
      throw SqlFaults.explain("cancelTimer", settings.table(), e);
    }
  }

  private Published insert(Connection connection, EncodedMessage message) {
    PublishBatch.requireRoom(message.payload().size(), 1);
    try (PreparedStatement statement = connection.prepareStatement(sql.single())) {
      statement.setBytes(1, message.payload().bytes());
      statement.setString(2, message.queue());
      statement.setString(3, message.type());
      statement.setString(4, message.orderingKey());
      statement.setString(5, message.headers());
      statement.setString(6, message.deliverAt());
      statement.setLong(7, message.delayOrZero());
      List<Long> ids = new ArrayList<>(1);
      try (ResultSet result = statement.executeQuery()) {
        while (result.next()) {
          ids.add(result.getLong(1));
        }
      }
      return PublishBatch.single(ids);
    } catch (SQLException e) {
      throw SqlFaults.explain("publish", settings.table(), e);
    }
  }

  private List<PublishBatch.Inserted> insert(Connection connection, PublishBatch batch) {
    try (PreparedStatement statement = connection.prepareStatement(sql.of(batch))) {
      statement.setBytes(1, batch.payloads);
      statement.setArray(2, connection.createArrayOf("int4", batch.firstBytes));
      statement.setArray(3, connection.createArrayOf("int4", batch.sizes));
      statement.setArray(4, connection.createArrayOf("text", batch.queues));
      statement.setArray(5, connection.createArrayOf("text", batch.types));
      statement.setArray(6, connection.createArrayOf("text", batch.orderingKeys));
      statement.setArray(7, connection.createArrayOf("text", batch.timerIds));
      statement.setArray(8, connection.createArrayOf("text", batch.headers));
      statement.setArray(9, connection.createArrayOf("int8", batch.delays));
      statement.setArray(10, connection.createArrayOf("text", batch.deliverAts));
      statement.setArray(11, connection.createArrayOf("int8", batch.expiries));
      statement.setArray(12, connection.createArrayOf("text", batch.expiresAts));
      if (batch.hasDedupKeys()) {
        statement.setArray(13, connection.createArrayOf("text", batch.dedupKeys));
        statement.setArray(14, connection.createArrayOf("int8", batch.inFlight));
        statement.setArray(15, connection.createArrayOf("int8", batch.completed));
      }
      if (batch.replacesTimers()) {
        statement.setArray(13, connection.createArrayOf("text", batch.replacedQueues));
        statement.setArray(14, connection.createArrayOf("text", batch.replacedTimers));
      }
      if (settings.asksForFirstDue(batch)) {
        PublishBatch.FirstDue firstDue = batch.firstDue();
        statement.setArray(13, connection.createArrayOf("text", firstDue.queues));
        statement.setArray(14, connection.createArrayOf("int8", firstDue.delays));
        statement.setArray(15, connection.createArrayOf("text", firstDue.deliverAts));
      }
      List<PublishBatch.Inserted> rows = new ArrayList<>(batch.queues.length);
      try (ResultSet result = statement.executeQuery()) {
        while (result.next()) {
          rows.add(
              new PublishBatch.Inserted(
                  result.getLong(1),
                  result.getString(2),
                  result.getString(3),
                  batch.hasDedupKeys() ? result.getInt(4) : 0));
        }
      }
      return rows;
    } catch (SQLException e) {
      throw SqlFaults.explain("publish", settings.table(), e);
    }
  }

  private void requireTransaction(Connection connection, String operation) {
    if (settings.autoCommitAllowed()) {
      return;
    }
    try {
      if (connection.getAutoCommit()) {
        throw settings.autoCommitRefused(operation);
      }
    } catch (SQLException e) {
      throw SqlFaults.explain(operation, settings.table(), e);
    }
  }
}
