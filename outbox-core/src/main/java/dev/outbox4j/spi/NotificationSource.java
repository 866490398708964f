package dev.outbox4j.spi;

/**
 * Wakes subscribers when something was published. Thread-safe; one object may serve many
 * subscribers, which then share one connection per channel.
 *
 * <p>A source reconnects by itself, with backoff, and finds a dead connection by a bounded probe.
 * What it loses costs latency and never a message, since polling goes on. It logs its outages
 * itself, once for all its listeners: subscribers only have them in their health.
 */
public interface NotificationSource {

  /** The first character of a payload that wakes one subscriber by name. */
  char BY_NAME = '\u0001';

  /**
   * Returns the text by which a subscriber finds out whether it hears its own store: it sends it
   * with {@link OutboxStore#send} and must hear it.
   *
   * @param owner the subscriber's, as in its claims
   * @return the text
   */
  static String toItself(String owner) {
    return String.valueOf(BY_NAME) + BY_NAME + owner;
  }

  /**
   * Begins to listen; returns at once and does its I/O on a thread of its own.
   *
   * @param channel the channel
   * @param listener told what happens; its methods must return quickly
   * @return ends the listening when closed
   */
  Subscription listen(String channel, Listener listener);

  /** Told what happens on a channel, on a thread of the source. */
  interface Listener {

    /** LISTEN is in force; what was committed before it went unheard, so look once. */
    void connected();

    /**
     * A notification came. Every one has to be passed on: a subscriber that does not hear what it
     * sends to itself takes the source for one of another database.
     *
     * @param payload its text: the queue's name for a message that is due, {@link #BY_NAME} and an
     *     owner's name to wake that subscriber alone, {@link #toItself} from a subscriber to itself
     */
    void notified(String payload);

    /**
     * The connection could not be made or was lost; the source goes on trying. May be called again
     * for each attempt that fails.
     *
     * @param cause why
     */
    void disconnected(Throwable cause);
  }

  /** A listening that can be ended. */
  interface Subscription extends AutoCloseable {

    /** Ends the listening; idempotent, bounded in time, throws nothing. */
    @Override
    void close();
  }
}
