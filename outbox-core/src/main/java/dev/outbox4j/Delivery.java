package dev.outbox4j;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;

/**
 * One message under one lease, as a handler receives it. Thread-safe. Instants are the database
 * server's.
 */
public interface Delivery {

  /** {@return the row's id, unique in its table} */
  long id();

  /** {@return the queue the message was published to} */
  String queue();

  /** {@return the stable message type, if it was published with one} */
  Optional<String> type();

  /** {@return the key whose messages belong in order, if it has one} */
  Optional<String> orderingKey();

  /** {@return the dedup key among live rows, if it has one} */
  Optional<String> timerId();

  /** {@return the bytes as published} */
  Payload payload();

  /** {@return all headers, unmodifiable} */
  Map<String, String> headers();

  /**
   * Returns a header.
   *
   * @param name its exact name
   * @return its value, or empty if there is none
   */
  default Optional<String> header(String name) {
    return Optional.ofNullable(headers().get(name));
  }

  /** {@return the media type of the payload, if it was published with one} */
  default Optional<String> contentType() {
    return header(OutboxMessage.CONTENT_TYPE);
  }

  /** {@return the id that ties this message to others, if it was published with one} */
  default Optional<String> correlationId() {
    return header(OutboxMessage.CORRELATION_ID);
  }

  /** {@return the message's place in a trace, if it was published with one} */
  default Optional<String> traceparent() {
    return header(OutboxMessage.TRACEPARENT);
  }

  /** {@return when the publishing transaction began} */
  Instant createdAt();

  /** {@return from when on this message was due} */
  Instant availableAt();

  /**
   * {@return from when on no handler is called with this message, if it expires} A handler that
   * began in time is not interrupted.
   */
  Optional<Instant> expiresAt();

  /** {@return which handler run this is, counted from 1; earlier ones ended in failure} */
  int attempt();

  /** {@return how often the row was claimed, this claim included} */
  int deliveries();

  /**
   * {@return the fencing token of this lease: it grows with every claim of the row} Pass it on to
   * systems that can refuse a smaller token than they have seen. Rows of an ordered queue are not
   * claimed: there it is the same for an owner that was cut off and for the next one.
   */
  long leaseToken();

  /**
   * Tells whether the lease is lost, or can no longer be shown to be held because it could not be
   * renewed in time, or no longer serves this run because the run went past the handler timeout.
   * Another subscriber may then have the message; whatever is decided here changes nothing. A
   * long-running handler should look and give up.
   *
   * @return true if another owner must be assumed
   */
  boolean leaseLost();

  /**
   * Returns how long the lease lasts yet, by this process's clock. It is renewed while the handler
   * runs, and so grows again. What must not happen after the end of the lease, such as a call of
   * another system, should take no longer than this.
   *
   * @return the time; zero once {@link #leaseLost()}
   */
  Duration leaseLeft();

  /**
   * Tells whether the subscriber is stopping. A handler that can end early should do so: after the
   * graceful timeout it is interrupted, and its message comes again.
   *
   * @return true from when the stop has begun
   */
  boolean stopping();

  /**
   * Decides the outcome. The last decision before the handler returns (or its stage completes)
   * holds; an exception from the handler overrides it. Not so of a {@link BatchHandler}: what it
   * has decided of a message before it throws stays, acks included, so it should not ack what is
   * not safely written.
   *
   * @param outcome what becomes of the message
   * @throws IllegalStateException if the run has ended: the handler has returned, its stage has
   *     completed, or the handler timeout has passed. The decision changes nothing then. While the
   *     run goes on but its lease is lost, a decision is taken and changes nothing either
   */
  void decide(Outcome outcome);

  /**
   * Returns what {@link #decide} was last given, for what is put around handlers.
   *
   * @return empty if nothing was decided yet; what the handler returns or throws is not in it
   */
  Optional<Outcome> decided();
}
