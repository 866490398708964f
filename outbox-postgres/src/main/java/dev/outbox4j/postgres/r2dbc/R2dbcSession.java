package dev.outbox4j.postgres.r2dbc;

import dev.outbox4j.OutboxException;
import dev.outbox4j.postgres.internal.NumberedWrites;
import dev.outbox4j.postgres.internal.Redaction;
import dev.outbox4j.spi.HandlerTransactions.Decision;
import dev.outbox4j.spi.ReactiveTransactions.Work;
import io.r2dbc.postgresql.api.PostgresqlConnection;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.IsolationLevel;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Statement;
import io.r2dbc.spi.ValidationDepth;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * A borrowed connection with a transaction of a handler's. One step follows the other, but for
 * {@link #abort}, which any thread may call.
 */
final class R2dbcSession {
  private static final Logger log = LoggerFactory.getLogger(R2dbcSession.class);

  /** How long a rollback may wait for the statement before it. */
  private static final Duration PATIENCE = Duration.ofSeconds(1);

  private final Connection connection;
  private final PostgresqlConnection driver;
  private final GuardedConnection guarded;
  private final Duration timeout;
  private final CompletableFuture<Decision> decision = new CompletableFuture<>();
  private volatile boolean useless; // to whoever would have the connection next
  private volatile boolean lost; // the transaction could not be rolled back
  private volatile boolean aborted;
  private boolean over; // guarded by this
  private boolean rollingBack; // guarded by this

  R2dbcSession(Connection connection, PostgresqlConnection driver, Duration timeout) {
    this.connection = connection;
    this.driver = driver;
    this.guarded = new GuardedConnection(connection);
    this.timeout = timeout;
  }

  /** What the connection lets its transactions do, whatever one of them has set for itself. */
  enum Access {
    READ_WRITE,
    READ_ONLY,
    LOST,
    /** It was broken off, or does not answer. */
    UNKNOWN
  }

  Connection connection() {
    return connection;
  }

  /** Begins a transaction, also if the connection comes with an open one. */
  Mono<Void> begin() {
    return Mono.defer(
            () ->
                Mono.from(connection.rollbackTransaction())
                    .then(Mono.from(connection.beginTransaction(IsolationLevel.READ_COMMITTED))))
        .timeout(timeout);
  }

  /** Has the handler begin, on the calling thread. */
  void handle(Work<Connection> work) {
    CompletionStage<Decision> stage;
    try {
      stage = work.run(guarded);
    } catch (Throwable thrown) {
      decision.completeExceptionally(thrown);
      return;
    }
    stage.whenComplete(
        (decided, thrown) -> {
          if (thrown == null) {
            decision.complete(decided);
          } else {
            decision.completeExceptionally(thrown);
          }
        });
  }

  /** What the handler failed with. Reactor throws some errors on, and nothing would ever end. */
  static final class HandlerFailure extends RuntimeException {
    private static final long serialVersionUID = 1;
    private final Throwable thrown;

    HandlerFailure(Throwable thrown) {
      super(null, null, false, false);
      this.thrown = thrown;
    }

    /** {@return the very object} */
    Throwable thrown() {
      return thrown;
    }
  }

  /** Gives what the handler came to, or a {@link HandlerFailure}. */
  Mono<Decision> decision() {
    return Mono.<Decision>create(
            sink -> {
              CompletableFuture<Decision> unused =
                  decision.whenComplete(
                      (decided, thrown) -> {
                        if (thrown == null) {
                          sink.success(decided);
                        } else {
                          sink.error(new HandlerFailure(thrown));
                        }
                      });
            })
        .flatMap(this::withAllRead)
        .doOnTerminate(guarded::takeBack);
  }

  /** What would be committed must have been done. */
  private Mono<Decision> withAllRead(Decision decided) {
    int unread = guarded.unread();
    if (unread == 0 || decided instanceof Decision.RollBack) {
      return Mono.just(decided);
    }
    return Mono.error(
        new HandlerFailure(
            new OutboxException(
                "The handler ended and has not read "
                    + unread
                    + " result(s) of its statements, which may not have run: a driver sends what is"
                    + " asked for. Read each, such as by"
                    + " Flux.from(statement.execute()).concatMap(Result::getRowsUpdated)")));
  }

  /** Breaks off what the handler, or the end of its transaction, waits for; from any thread. */
  void abort() {
    synchronized (this) {
      if (over) {
        return;
      }
      aborted = true;
    }
    decision.completeExceptionally(
        new CancellationException("the handler's transaction was broken off"));
    // else the server would go on with it
    driver
        .cancelRequest()
        .timeout(timeout)
        .onErrorResume(R2dbcSession::givenUp)
        .then(closed())
        .subscribe();
  }

  /** Runs statements one after the other; tells whether the last one gave a row. None is no row. */
  Mono<Boolean> run(List<NumberedWrites.Statement> statements) {
    return Flux.fromIterable(statements)
        .concatMap(
            each -> {
              Statement statement = connection.createStatement(each.text());
              for (int i = 0; i < each.values().size(); i++) {
                statement.bind(i, each.values().get(i));
              }
              return Flux.from(statement.execute())
                  .concatMap(result -> result.map(row -> true))
                  .any(row -> row);
            })
        .last(false)
        .timeout(timeout);
  }

  Mono<Void> commit() {
    return Mono.defer(() -> Mono.from(connection.commitTransaction())).timeout(timeout);
  }

  /** What cannot be rolled back is closed: the server rolls it back then. */
  Mono<Void> rollBack() {
    return Mono.defer(
        () -> {
          if (aborted) {
            return Mono.empty();
          }
          setRollingBack(true);
          Disposable patience =
              Mono.delay(PATIENCE).then(Mono.defer(this::cancelStatement)).subscribe();
          return Mono.from(connection.rollbackTransaction())
              .timeout(timeout)
              .doOnTerminate(() -> setRollingBack(false)) // before the connection can be given back
              .doFinally(end -> patience.dispose())
              .onErrorResume(
                  e -> {
                    lost = !aborted;
                    useless = true;
                    return givenUp(e);
                  });
        });
  }

  private synchronized void setRollingBack(boolean now) {
    rollingBack = now;
  }

  /**
   * What nobody waits for any more may run yet, such as a statement for which the handler, or the
   * ack, has waited for too long: the server would go on with it, and keep the transaction's locks.
   */
  private Mono<Void> cancelStatement() {
    synchronized (this) {
      if (!rollingBack) {
        return Mono.empty();
      }
      useless = true; // it may come too late, and hit the next one
    }
    return driver.cancelRequest().timeout(timeout).onErrorResume(R2dbcSession::givenUp);
  }

  /** Rolls back, and tells what the connection allows: what the handler has set is gone by then. */
  Mono<Access> accessAfterRollBack() {
    return rollBack()
        .then(Mono.defer(() -> Mono.from(connection.validate(ValidationDepth.LOCAL))))
        .flatMap(
            connected -> {
              if (aborted) {
                return Mono.just(Access.UNKNOWN);
              }
              return lost || !connected ? Mono.just(Access.LOST) : askAccess();
            })
        .timeout(timeout)
        .onErrorResume(
            e -> {
              useless = true;
              return R2dbcSession.<Access>givenUp(e).defaultIfEmpty(Access.UNKNOWN);
            });
  }

  private Mono<Access> askAccess() {
    return Flux.from(
            connection.createStatement("select current_setting('transaction_read_only')").execute())
        .concatMap((Result result) -> result.map(row -> "on".equals(row.get(0, String.class))))
        .last()
        .map(
            readOnly -> {
              useless |= readOnly; // another server may be the right one
              return readOnly ? Access.READ_ONLY : Access.READ_WRITE;
            });
  }

  /** Nobody is to have the connection after this. */
  void closeForGood() {
    useless = true;
  }

  /** Gives the connection back, if its transaction has ended. */
  Mono<Void> release() {
    return Mono.defer(
        () -> {
          guarded.takeBack();
          boolean closes;
          synchronized (this) {
            over = true;
            closes = useless || aborted;
          }
          return (closes ? closed() : Mono.<Void>empty())
              .then(
                  Mono.defer(() -> Mono.from(connection.close()))
                      .timeout(timeout)
                      .onErrorResume(R2dbcSession::givenUp));
        });
  }

  /** Closes the driver's own connection, so that a pool does not hand it out again. */
  private Mono<Void> closed() {
    return Mono.defer(driver::close).timeout(timeout).onErrorResume(R2dbcSession::givenUp);
  }

  /** What fails here cannot be helped, and must not hide how the transaction ended. */
  private static <T> Mono<T> givenUp(Throwable failure) {
    log.debug("a connection was given up", Redaction.redact(failure));
    return Mono.empty();
  }
}
