package dev.outbox4j.postgres.notify.ng;

import dev.outbox4j.postgres.notify.internal.ListenHub;
import dev.outbox4j.postgres.notify.internal.Probe;
import dev.outbox4j.spi.NotificationSource;
import java.time.Duration;
import javax.sql.DataSource;

/**
 * LISTEN through pgjdbc-ng. The driver pushes: a listener hears of a commit within a fraction of a
 * millisecond. Thread-safe; one object may serve many subscribers, which then share one connection
 * per channel, opened for the first listener and closed with the last.
 *
 * <p>{@code notified} is called on the driver's event loop, the other callbacks on a daemon thread
 * {@code outbox-listen-<channel>...}; all must return quickly. A lost connection is reported to
 * each listener for every attempt that fails and tried again after 100 ms, doubling to 2 s.
 *
 * <p>The driver bounds its own log-in only by minutes; an attempt that takes more than 10 s is
 * reported and waited for, and given up after a minute.
 *
 * <p>Over TLS the driver logs in by {@code scram-sha-256} only if the server's certificate is
 * signed with SHA-256, and has no setting for that. Otherwise each attempt is reported with these
 * words; the other sources have no such limit.
 */
public final class PgjdbcNgListen implements NotificationSource {
  private final ListenHub hub;

  private PgjdbcNgListen(ListenHub hub) {
    this.hub = hub;
  }

  /**
   * Listens on connections of a data source. Does no I/O.
   *
   * @param source gives unpooled connections of pgjdbc-ng; a plain {@code
   *     com.impossibl.postgres.jdbc.PGDataSource} is copied for each connection, with a network
   *     timeout if it has none
   * @return the source
   * @throws IllegalArgumentException if the data source is a pool, also a wrapped one
   */
  public static PgjdbcNgListen on(DataSource source) {
    return new PgjdbcNgListen(new ListenHub(PgjdbcNgDriver.of(source), Probe.DEFAULT));
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
  public PgjdbcNgListen probe(Duration interval, Duration timeout) {
    return new PgjdbcNgListen(hub.with(new Probe(interval, timeout)));
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
