package dev.outbox4j.postgres.notify.r2dbc;

import dev.outbox4j.postgres.internal.Redaction;
import dev.outbox4j.postgres.notify.internal.ConnectionLostException;
import dev.outbox4j.postgres.notify.internal.EndSignal;
import dev.outbox4j.postgres.notify.internal.ListenConnection;
import io.r2dbc.postgresql.api.PostgresqlConnection;
import io.r2dbc.postgresql.api.PostgresqlResult;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;

/** A connection of r2dbc-postgresql, whose notification stream ends when the connection dies. */
final class R2dbcListenConnection implements ListenConnection {
  private static final Logger LOG = LoggerFactory.getLogger(R2dbcListenConnection.class);
  private static final Duration CLOSE_LIMIT = Duration.ofMillis(800);

  private final PostgresqlConnection connection;
  private final EndSignal end = new EndSignal();
  private final Disposable notifications;

  R2dbcListenConnection(
      PostgresqlConnection connection, Consumer<String> onNotification, Duration limit)
      throws Exception {
    this.connection = connection;
    this.notifications =
        connection
            .getNotifications()
            .subscribe(
                notification -> onNotification.accept(notification.getParameter()),
                end::died,
                () -> end.died(new ConnectionLostException("The notification stream has ended")));
    await(connection.setAutoCommit(true), limit);
  }

  @Override
  public void execute(String sql, Duration limit) throws Exception {
    await(
        connection.createStatement(sql).execute().flatMap(PostgresqlResult::getRowsUpdated).then(),
        limit);
  }

  @Override
  public void await(Duration limit) throws Exception {
    end.await(limit);
  }

  @Override
  public void abort() {
    end.died(new ConnectionLostException("The connection was closed by its owner"));
  }

  @Override
  public void close() {
    notifications.dispose();
    try {
      await(connection.close(), CLOSE_LIMIT);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (Exception e) { // it is given up either way
      LOG.debug("Closing the LISTEN connection failed", Redaction.redact(e));
    }
  }

  /** Never cancels: a close that nobody waits for any longer must still be done. */
  private static void await(Mono<Void> work, Duration limit) throws Exception {
    CompletableFuture<Void> future = work.toFuture();
    try {
      future.get(limit.toNanos(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException e) {
      throw new ConnectionLostException(
          "No answer from the server within " + limit.toMillis() + " ms");
    } catch (ExecutionException e) {
      throw e.getCause() instanceof Exception exception ? exception : e;
    }
  }
}
