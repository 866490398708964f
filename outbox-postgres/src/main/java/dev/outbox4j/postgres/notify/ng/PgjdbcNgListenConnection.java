package dev.outbox4j.postgres.notify.ng;

import com.impossibl.postgres.api.jdbc.PGConnection;
import com.impossibl.postgres.api.jdbc.PGNotificationListener;
import dev.outbox4j.postgres.internal.Redaction;
import dev.outbox4j.postgres.notify.internal.ConnectionLostException;
import dev.outbox4j.postgres.notify.internal.EndSignal;
import dev.outbox4j.postgres.notify.internal.JdbcSession;
import dev.outbox4j.postgres.notify.internal.ListenConnection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A connection of pgjdbc-ng, which calls back on its event loop. */
final class PgjdbcNgListenConnection implements ListenConnection {
  private static final Logger LOG = LoggerFactory.getLogger(PgjdbcNgListenConnection.class);
  private static final Duration CLOSE_LIMIT = Duration.ofMillis(800);

  private final PGConnection connection;
  private final EndSignal end = new EndSignal();
  private final PGNotificationListener listener;

  PgjdbcNgListenConnection(PGConnection connection, Consumer<String> onNotification, Duration limit)
      throws SQLException {
    this.connection = connection;
    JdbcSession.prepare(connection, limit);
    this.listener = new Callbacks(onNotification);
    connection.addNotificationListener(listener);
  }

  private final class Callbacks implements PGNotificationListener {
    private final Consumer<String> onNotification;

    Callbacks(Consumer<String> onNotification) {
      this.onNotification = onNotification;
    }

    @Override
    public void notification(int processId, String channelName, String payload) {
      onNotification.accept(payload);
    }

    @Override
    public void closed() {
      end.died(
          new ConnectionLostException("The connection was closed by the server or the network"));
    }
  }

  @Override
  public void execute(String sql, Duration limit) throws SQLException {
    JdbcSession.execute(connection, sql, limit);
  }

  @Override
  public void await(Duration limit) throws Exception {
    if (connection.isClosed()) {
      throw new ConnectionLostException("The connection is closed");
    }
    end.await(limit);
  }

  /** The driver's own close waits for its event loop, on which this may be called. */
  @Override
  public void abort() {
    end.died(new ConnectionLostException("The connection was closed by its owner"));
    Thread closer = new Thread(this::close, "outbox-listen-abort");
    closer.setDaemon(true);
    closer.start();
  }

  @Override
  public void close() {
    connection.removeNotificationListener(listener);
    try {
      connection.setNetworkTimeout(Runnable::run, Math.toIntExact(CLOSE_LIMIT.toMillis()));
      connection.close();
    } catch (SQLException e) {
      LOG.debug("Closing the LISTEN connection failed; it was closed already", Redaction.redact(e));
    }
  }
}
