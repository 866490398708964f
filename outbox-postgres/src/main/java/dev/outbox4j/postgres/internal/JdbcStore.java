package dev.outbox4j.postgres.internal;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.spi.BucketStore;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.PauseStore;
import dev.outbox4j.spi.RescheduleUpdate;
import dev.outbox4j.spi.RetryUpdate;
import dev.outbox4j.spi.SlotStore;
import dev.outbox4j.spi.Written;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.function.Function;
import java.util.function.LongSupplier;
import javax.sql.DataSource;

/**
 * The store over JDBC. Thread-safe; renders its statements when it is made, and does no I/O then.
 */
public final class JdbcStore implements PostgresStore {
  /** For pauses: a renewal may wait for its connection. */
  private static final Duration LONGEST_LOOK = Duration.ofSeconds(2);

  private final Following.Ends following;
  private final Jdbc jdbc;
  private final OutboxTable table;
  private final Claims claims;
  private final FencedStatement<LeaseRef> ack;
  private final FencedStatement<RetryUpdate> retry;
  private final FencedStatement<RescheduleUpdate> reschedule;
  private final FencedStatement<LeaseRef> renew;
  private final FencedStatement<LeaseRef> release;
  private final BucketStore buckets;
  private final PauseStore pauses;
  private final SlotStore slots;
  private final Sql pass;
  private final Sql forget;
  private final Sql send;

  /**
   * Creates a store.
   *
   * @param dataSource where to borrow connections
   * @param table the outbox
   * @param networkTimeout how long to wait for an answer before the connection is given up
   */
  public JdbcStore(DataSource dataSource, OutboxTable table, Duration networkTimeout) {
    this(dataSource, table, networkTimeout, Following.Ends.NOTHING);
  }

  /**
   * Creates a store with which more is written than the end of a message.
   *
   * @param dataSource where to borrow connections
   * @param table the outbox
   * @param networkTimeout how long to wait for an answer before the connection is given up
   * @param following what is written when a message ends
   */
  public JdbcStore(
      DataSource dataSource, OutboxTable table, Duration networkTimeout, Following.Ends following) {
    this(dataSource, table, networkTimeout, following, System::nanoTime);
  }

  JdbcStore(
      DataSource dataSource, OutboxTable table, Duration networkTimeout, LongSupplier nanoTime) {
    this(dataSource, table, networkTimeout, Following.Ends.NOTHING, nanoTime);
  }

  private JdbcStore(
      DataSource dataSource,
      OutboxTable table,
      Duration networkTimeout,
      Following.Ends following,
      LongSupplier nanoTime) {
    this.following = following;
    this.jdbc = new Jdbc(dataSource, table, networkTimeout);
    this.table = table;
    this.claims = new Claims(jdbc, table, nanoTime);
    LockedRows locked = new LockedRows(nanoTime);
    this.ack =
        fenced("ack", FencedSql.ACK.followedBy(following.ack()), Function.identity(), locked);
    this.retry = fenced("retry", FencedSql.RETRY, RetryUpdate::lease, locked);
    this.reschedule = fenced("reschedule", FencedSql.RESCHEDULE, RescheduleUpdate::lease, locked);
    this.renew =
        new FencedStatement<>(
            "renew", jdbc, new FencedSql(FencedSql.RENEW), Function.identity(), locked, true);
    this.release = fenced("release", FencedSql.RELEASE, Function.identity(), locked);
    this.buckets = new JdbcBuckets(jdbc, table, locked);
    this.pauses = new JdbcPauses(new Jdbc(dataSource, table, forLook(networkTimeout)));
    this.slots = new JdbcSlots(jdbc);
    this.pass = Preamble.before(StoreSql.PASS, table);
    this.send = Preamble.before(StoreSql.SEND, table);
    this.forget = Preamble.before(StoreSql.FORGET, table);
  }

  private static Duration forLook(Duration networkTimeout) {
    return networkTimeout.compareTo(LONGEST_LOOK) < 0 ? networkTimeout : LONGEST_LOOK;
  }

  private <T> FencedStatement<T> fenced(
      String operation, FencedSql.Effect effect, Function<T, LeaseRef> lease, LockedRows locked) {
    return new FencedStatement<>(operation, jdbc, new FencedSql(effect), lease, locked, false);
  }

  @Override
  public ClaimResult claim(ClaimRequest request) {
    return claims.claim(request);
  }

  @Override
  public Written ack(List<LeaseRef> leases) {
    return ack.execute(leases, rows -> Map.of());
  }

  @Override
  public Written retry(List<RetryUpdate> updates) {
    return retry.execute(
        updates,
        rows ->
            Map.of(
                "delays", seconds(rows, RetryUpdate::delay),
                "errors", rows.stream().map(RetryUpdate::error).toArray(String[]::new),
                "runs", rows.stream().mapToInt(row -> row.counted() ? 1 : 0).toArray(),
                "given_back", rows.stream().mapToInt(row -> row.givesBack() ? 1 : 0).toArray(),
                "channel", channel()));
  }

  @Override
  public Written reschedule(List<RescheduleUpdate> updates) {
    return reschedule.execute(
        updates,
        rows -> Map.of("delays", seconds(rows, RescheduleUpdate::delay), "channel", channel()));
  }

  private static <T> double[] seconds(List<T> rows, Function<T, Duration> delay) {
    return rows.stream().mapToDouble(row -> ServerTime.seconds(delay.apply(row))).toArray();
  }

  @Override
  public Written renew(List<LeaseRef> leases, Duration lease) {
    return renew.execute(leases, rows -> Map.of("lease", ServerTime.seconds(lease)));
  }

  @Override
  public Written release(List<LeaseRef> leases) {
    return release.execute(leases, rows -> Map.of("channel", channel()));
  }

  @Override
  public void pass(String queue, String owner) {
    run("pass", pass, Map.of("queue", queue, "owner", owner, "channel", channel()));
  }

  @Override
  public void forget(String owner) {
    run("forget", forget, Map.of("owner", owner, "channel", channel()));
  }

  @Override
  public void send(String payload) {
    run("send", send, Map.of("channel", channel(), "payload", payload));
  }

  @Override
  public Optional<BucketStore> buckets() {
    return Optional.of(buckets);
  }

  @Override
  public Optional<PauseStore> pauses() {
    return Optional.of(pauses);
  }

  @Override
  public Optional<SlotStore> slots() {
    return Optional.of(slots);
  }

  private void run(String operation, Sql sql, Map<String, Object> values) {
    jdbc.run(
        operation,
        connection ->
            jdbc.preamble().run(connection, sql, values, null, (start, results) -> start));
  }

  @Override
  public String channel() {
    return table.channel();
  }

  @Override
  public OptionalInt connectionLimit() {
    return PoolSize.of(jdbc.dataSource());
  }

  @Override
  public Object connectionSource() {
    return jdbc.dataSource();
  }

  /** {@return what is written when a message ends} */
  public Following.Ends following() {
    return following;
  }

  @Override
  public DataSource dataSource() {
    return jdbc.dataSource();
  }

  @Override
  public OutboxTable table() {
    return table;
  }

  @Override
  public Duration networkTimeout() {
    return jdbc.networkTimeout();
  }

  @Override
  public String toString() {
    return "PostgresStore[" + table + "]";
  }
}
