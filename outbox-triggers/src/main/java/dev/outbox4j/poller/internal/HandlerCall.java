package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.PollerHandler;
import dev.outbox4j.poller.TransactionalPollerHandler;
import java.sql.Connection;
import java.util.Objects;

/** What a poller is for. */
public sealed interface HandlerCall {
  /**
   * A handler without a transaction.
   *
   * @param handler the handler
   */
  record Plain(PollerHandler handler) implements HandlerCall {
    /** Refuses null. */
    public Plain {
      Objects.requireNonNull(handler, "handler");
    }
  }

  /**
   * A handler in the transaction that moves the position.
   *
   * @param handler the handler
   */
  record Transactional(TransactionalPollerHandler<Connection> handler) implements HandlerCall {
    /** Refuses null. */
    public Transactional {
      Objects.requireNonNull(handler, "handler");
    }
  }
}
