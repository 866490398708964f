package dev.outbox4j.postgres.notify.pgjdbc;

import dev.outbox4j.postgres.notify.internal.ListenHub;
import dev.outbox4j.postgres.notify.internal.Probe;
import dev.outbox4j.spi.NotificationSource;
import java.time.Duration;
import javax.sql.DataSource;

/**
 * LISTEN through pgjdbc. Needs no further jar; a listener hears of a commit after one to two
 * milliseconds, since the driver has to be asked. Thread-safe; one object may serve many
 * subscribers, which then share one connection per channel, opened for the first listener and
 * closed with the last.
 *
 * <p>Callbacks come on daemon threads {@code outbox-listen-<channel>...} and must return quickly. A
 * lost connection is reported to each listener for every attempt that fails and tried again after
 * 100 ms, doubling to 2 s.
 *
 * <p>An attempt that takes more than 12 s is reported and waited for, and given up after a minute.
 */
public final class PgjdbcListen implements NotificationSource {
  private final ListenHub hub;

  private PgjdbcListen(ListenHub hub) {
    this.hub = hub;
  }

  /**
   * Listens on connections of a data source. Does no I/O.
   *
   * @param source gives unpooled connections of pgjdbc; a plain {@code
   *     org.postgresql.ds.PGSimpleDataSource} is copied for each connection, with TCP keep-alive
   *     and with a socket timeout if it has none
   * @return the source
   * @throws IllegalArgumentException if the data source is a pool, such as HikariCP's, also a
   *     wrapped one
   */
  public static PgjdbcListen on(DataSource source) {
    return new PgjdbcListen(new ListenHub(PgjdbcDriver.of(source), Probe.DEFAULT));
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
  public PgjdbcListen probe(Duration interval, Duration timeout) {
    return new PgjdbcListen(hub.with(new Probe(interval, timeout)));
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
