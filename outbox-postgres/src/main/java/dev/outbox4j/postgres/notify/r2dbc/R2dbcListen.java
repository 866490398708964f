package dev.outbox4j.postgres.notify.r2dbc;

import dev.outbox4j.postgres.notify.internal.ListenHub;
import dev.outbox4j.postgres.notify.internal.Probe;
import dev.outbox4j.spi.NotificationSource;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;

/**
 * LISTEN through r2dbc-postgresql. The driver pushes: a listener hears of a commit within a
 * fraction of a millisecond. Thread-safe; one object may serve many subscribers, which then share
 * one connection per channel, opened for the first listener and closed with the last.
 *
 * <p>{@code notified} is called on the driver's event loop, the other callbacks on a daemon thread
 * {@code outbox-listen-<channel>...}; all must return quickly. A lost connection is reported to
 * each listener for every attempt that fails and tried again after 100 ms, doubling to 2 s.
 *
 * <p>Turn on {@code tcpKeepAlive} and set {@code connectTimeout} on the factory; an attempt that
 * takes more than 12 s is reported and waited for, and given up after a minute.
 */
public final class R2dbcListen implements NotificationSource {
  private final ListenHub hub;

  private R2dbcListen(ListenHub hub) {
    this.hub = hub;
  }

  /**
   * Listens on connections of a factory. Does no I/O.
   *
   * @param factory gives unpooled connections of r2dbc-postgresql, such as a {@code
   *     PostgresqlConnectionFactory}; a wrapper that can be unwrapped will do
   * @return the source
   * @throws IllegalArgumentException if the factory is a pool, also a wrapped one
   */
  public static R2dbcListen on(ConnectionFactory factory) {
    return new R2dbcListen(new ListenHub(R2dbcDriver.of(factory), Probe.DEFAULT));
  }

  /**
   * Returns a source with another probe, which asks an idle connection whether it lives.
   *
   * @param interval how often, 100 ms to 10 min; default 10 s
   * @param timeout how long the answer may take before the connection counts as dead, 100 ms to 1
   *     min; default 5 s
   * @return a source of its own, which shares no connection with this one
   * @throws IllegalArgumentException if a value is out of range
   */
  public R2dbcListen probe(Duration interval, Duration timeout) {
    return new R2dbcListen(hub.with(new Probe(interval, timeout)));
  }

  /**
   * {@inheritDoc}
   *
   * @throws IllegalArgumentException if the channel is blank, longer than 63 bytes in UTF-8, or
   *     holds a NUL character
   */
  @Override
  public Subscription listen(String channel, Listener listener) {
    return hub.listen(channel, listener);
  }
}
