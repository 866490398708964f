package dev.outbox4j.postgres.internal.transactions;

import dev.outbox4j.postgres.internal.Redaction;
import dev.outbox4j.postgres.internal.SqlFaults;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.Executor;
import org.postgresql.PGConnection;
import org.postgresql.core.BaseConnection;
import org.postgresql.core.TransactionState;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A borrowed connection with a transaction of a handler's. Confined to the handler's thread, but
 * for {@link #abort}.
 */
final class HandlerSession {
  private static final Logger log = LoggerFactory.getLogger(HandlerSession.class);
  private static final Executor SAME_THREAD = Runnable::run;

  private final Connection connection;
  private final Thread thread = Thread.currentThread();
  private boolean setsAutoCommit;
  private boolean readOnly; // as it was borrowed
  private int timeout = -1; // of the network, if it is to be set back
  private boolean ended; // the transaction has, surely
  private boolean useless; // to whoever would have the connection next
  private boolean lost; // the transaction could not be rolled back, nor was it aborted

  // guarded by this
  private boolean ending; // the handler is done
  private boolean aborted;
  private boolean interrupted; // by the abort
  private boolean over;

  HandlerSession(Connection connection) {
    this.connection = connection;
  }

  /** What a handler does. */
  @FunctionalInterface
  interface Work<R> {
    R run(Connection connection) throws Exception;
  }

  Connection connection() {
    return connection;
  }

  /** The next statement begins a transaction. */
  void begin() throws SQLException {
    readOnly = connection.isReadOnly();
    if (connection.getAutoCommit()) {
      connection.setAutoCommit(false);
      setsAutoCommit = true;
    } else {
      connection.rollback(); // a pool's test query may have begun one, at another isolation
    }
  }

  /** Somebody else has begun it, and ends it; a lazy connection is fetched before the handler. */
  void isBegun() throws SQLException {
    connection.unwrap(PGConnection.class);
    readOnly = connection.isReadOnly();
  }

  /** Hands the connection to a handler, for as long as it runs. */
  <R> R run(Work<R> work) throws Exception {
    HandlerConnection.Handed handed = HandlerConnection.handOut(connection);
    try {
      return work.run(handed.seen());
    } finally {
      handed.guard().takeBack();
      handlerIsDone();
    }
  }

  private synchronized void handlerIsDone() {
    ending = true;
  }

  /** Breaks off what the handler, or the end of its transaction, waits for; from another thread. */
  synchronized void abort() {
    if (!over) {
      aborted = true;
      // else the server would go on with it
      quietly(() -> connection.unwrap(PGConnection.class).cancelQuery());
      quietly(() -> connection.abort(SAME_THREAD));
      if (ending) { // the driver may wait for its own lock, as of a copy that was not ended
        interrupted = true;
        thread.interrupt();
      }
    }
  }

  private synchronized boolean isAborted() {
    return aborted;
  }

  /** Nothing breaks it off any more, and an interrupt that was to do so hits nothing later. */
  synchronized void endAborts() {
    over = true;
    if (interrupted) {
      Thread.interrupted();
    }
  }

  /** Bounds the waits for answers from now on. */
  void shortenTimeout(int millis) throws SQLException {
    int known = connection.getNetworkTimeout();
    if (known == 0 || known > millis) {
      connection.setNetworkTimeout(SAME_THREAD, millis);
      timeout = known;
    }
  }

  void commit() throws SQLException {
    connection.commit();
    ended = true;
  }

  /** Sets no bound any more than there was. */
  void restoreTimeout() throws SQLException {
    if (timeout >= 0) {
      connection.setNetworkTimeout(SAME_THREAD, timeout);
      timeout = -1;
    }
  }

  /** What cannot be rolled back is closed: the server rolls it back then. */
  void rollBack(int timeoutMillis) {
    if (isAborted()) {
      return;
    }
    try {
      if (connection.isClosed()) {
        lost = true;
        return;
      }
      shortenTimeout(timeoutMillis);
      connection.rollback();
      ended = true;
    } catch (Throwable e) { // an Error would hide why it was to be rolled back
      lost = e instanceof SQLException failure && SqlFaults.isLost(failure);
      log.debug("a transaction could not be rolled back", Redaction.redact(e));
    }
  }

  /** Tells whether the rollback found the connection lost, and not aborted by {@link #abort}. */
  boolean isLost() {
    return lost && !isAborted();
  }

  /** Rolls back, and tells what the connection allows: what the handler has set is gone by then. */
  Access accessAfterRollBack(int timeoutMillis) {
    rollBack(timeoutMillis);
    if (!ended || isAborted()) {
      return Access.UNKNOWN;
    }
    try {
      if (connection.isReadOnly() != readOnly) { // by way of the connection that is behind ours
        connection.setReadOnly(readOnly);
      }
    } catch (SQLException e) {
      return Access.UNKNOWN;
    }
    return Access.ask(connection);
  }

  /** Nobody is to have the connection after this. */
  void closeForGood() {
    useless = true;
  }

  /**
   * Gives the connection back as it was, if its transaction has ended: autocommit would commit it.
   */
  void giveBack() {
    endAborts();
    if (useless || !ended || !quietly(this::restore)) {
      quietly(() -> connection.abort(SAME_THREAD));
    }
    quietly(connection::close);
  }

  /**
   * Leaves the connection to whoever has begun the transaction, and ended it; if it is still open,
   * nobody may have it, since autocommit would commit it.
   */
  void leave() {
    endAborts();
    if (useless || !quietly(this::requireIdle) || !quietly(this::restoreTimeout)) {
      quietly(() -> connection.abort(SAME_THREAD));
    }
  }

  private void requireIdle() throws SQLException {
    TransactionState state = connection.unwrap(BaseConnection.class).getTransactionState();
    if (state != TransactionState.IDLE) {
      throw new SQLException("the transaction is still " + state, "25000");
    }
  }

  private void restore() throws SQLException {
    restoreTimeout();
    if (setsAutoCommit) {
      connection.setAutoCommit(true);
    }
  }

  private interface Action {
    void run() throws SQLException;
  }

  /** What fails here cannot be helped, and must not hide how the transaction ended. */
  private static boolean quietly(Action action) {
    try {
      action.run();
      return true;
    } catch (Throwable e) {
      log.debug("a connection was given up", Redaction.redact(e));
      return false;
    }
  }
}
