package dev.outbox4j.postgres.r2dbc;

import io.r2dbc.spi.Batch;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionMetadata;
import io.r2dbc.spi.IsolationLevel;
import io.r2dbc.spi.R2dbcNonTransientResourceException;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Statement;
import io.r2dbc.spi.TransactionDefinition;
import io.r2dbc.spi.ValidationDepth;
import io.r2dbc.spi.Wrapped;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * A connection as a handler sees it: it cannot end the transaction, and is of no use after it.
 * Closing it does nothing, so that it may be handed to code that closes what it is given.
 */
final class GuardedConnection implements Connection, Wrapped<Connection> {
  private final Connection connection;
  private final AtomicInteger unread = new AtomicInteger();
  private volatile boolean over;

  GuardedConnection(Connection connection) {
    this.connection = connection;
  }

  /** The handler has ended: whoever kept the connection has it no longer. */
  void takeBack() {
    over = true;
  }

  private Connection open() {
    requireOpen();
    return connection;
  }

  /** Throws if the handler has ended. */
  private void requireOpen() {
    if (over) {
      throw new R2dbcNonTransientResourceException(
          "The handler has ended, and its transaction is over; nothing may use its connection after"
              + " that",
          "08003");
    }
  }

  /** Runs what gives results, and notes which of them nobody reads. */
  Publisher<Result> guarded(Supplier<Publisher<? extends Result>> execution) {
    return Flux.defer(
            () -> {
              requireOpen();
              return execution.get();
            })
        .map(this::noted);
  }

  private Result noted(Result result) {
    unread.incrementAndGet();
    AtomicBoolean known = new AtomicBoolean();
    return new GuardedResult(
        result,
        () -> {
          if (known.compareAndSet(false, true)) {
            unread.decrementAndGet();
          }
        });
  }

  /** {@return how many results nobody has begun to read} */
  int unread() {
    return unread.get();
  }

  private static Publisher<Void> refused() {
    return Mono.error(
        () ->
            new R2dbcNonTransientResourceException(
                "The transaction of a transactional handler ends with its message: complete to"
                    + " commit it, fail or give another outcome to roll it back",
                "2D000"));
  }

  /** It has begun. */
  @Override
  public Publisher<Void> beginTransaction() {
    return Mono.empty();
  }

  @Override
  public Publisher<Void> beginTransaction(TransactionDefinition definition) {
    return Mono.empty();
  }

  @Override
  public Publisher<Void> commitTransaction() {
    return refused();
  }

  @Override
  public Publisher<Void> rollbackTransaction() {
    return refused();
  }

  @Override
  public Publisher<Void> setAutoCommit(boolean autoCommit) {
    return autoCommit ? refused() : Mono.empty();
  }

  @Override
  public Publisher<Void> close() {
    return Mono.empty();
  }

  @Override
  public Batch createBatch() {
    Batch batch = open().createBatch();
    return new Batch() {
      @Override
      public Batch add(String sql) {
        batch.add(sql);
        return this;
      }

      @Override
      public Publisher<? extends Result> execute() {
        return guarded(batch::execute);
      }
    };
  }

  @Override
  public Statement createStatement(String sql) {
    return new GuardedStatement(open().createStatement(sql), this);
  }

  @Override
  public Publisher<Void> createSavepoint(String name) {
    return Mono.defer(() -> Mono.from(open().createSavepoint(name)));
  }

  @Override
  public Publisher<Void> releaseSavepoint(String name) {
    return Mono.defer(() -> Mono.from(open().releaseSavepoint(name)));
  }

  @Override
  public Publisher<Void> rollbackTransactionToSavepoint(String name) {
    return Mono.defer(() -> Mono.from(open().rollbackTransactionToSavepoint(name)));
  }

  @Override
  public boolean isAutoCommit() {
    return open().isAutoCommit();
  }

  @Override
  public ConnectionMetadata getMetadata() {
    return open().getMetadata();
  }

  @Override
  public IsolationLevel getTransactionIsolationLevel() {
    return open().getTransactionIsolationLevel();
  }

  @Override
  public Publisher<Void> setTransactionIsolationLevel(IsolationLevel level) {
    return Mono.defer(() -> Mono.from(open().setTransactionIsolationLevel(level)));
  }

  @Override
  public Publisher<Void> setLockWaitTimeout(Duration timeout) {
    return Mono.defer(() -> Mono.from(open().setLockWaitTimeout(timeout)));
  }

  @Override
  public Publisher<Void> setStatementTimeout(Duration timeout) {
    return Mono.defer(() -> Mono.from(open().setStatementTimeout(timeout)));
  }

  @Override
  public Publisher<Boolean> validate(ValidationDepth depth) {
    return over ? Mono.just(false) : connection.validate(depth);
  }

  @Override
  public Connection unwrap() {
    return open();
  }

  @Override
  public String toString() {
    return "GuardedConnection[" + connection + "]";
  }
}
