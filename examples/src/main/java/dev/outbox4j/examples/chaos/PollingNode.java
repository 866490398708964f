package dev.outbox4j.examples.chaos;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.poller.Cursor;
import dev.outbox4j.poller.Deletes;
import dev.outbox4j.poller.PollContext;
import dev.outbox4j.poller.Poller;
import dev.outbox4j.poller.PollerEvents;
import dev.outbox4j.poller.PollerFailure;
import dev.outbox4j.poller.Pollers;
import dev.outbox4j.poller.RowChange;
import dev.outbox4j.poller.Source;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A process of the {@link PollerProof}: it follows the table until it is killed. */
final class PollingNode {
  static final String APPLICATION = "proof";

  /** Those whose handlers write to the ledger by themselves. */
  static final List<String> PLAIN = List.of("plain-by-sequence", "plain-by-time");

  /** Those whose handlers do so in the transaction of the position. */
  static final List<String> TRANSACTIONAL =
      List.of("transactional-by-sequence", "transactional-by-time");

  private static final Logger log = LoggerFactory.getLogger(PollingNode.class);
  private static final int POOL = 8;
  private static final Duration INTERVAL = Duration.ofMillis(50);

  /** A handler takes up to so long, before and after it writes. */
  private static final int LONGEST_PAUSE_MILLIS = 100;

  /** But for some, so that there are handlers that run when their process is frozen. */
  private static final int LONGEST_SLOW_PAUSE_MILLIS = 1_000;

  private static final int ONE_OF_SO_MANY_IS_SLOW = 10;

  private static final String NOTE =
      """
      insert into %s (poller, id, revision, process, token)
      select ?, r.id, r.revision, ?, ? from unnest(?::bigint[], ?::int[]) r (id, revision)
      """;

  private final HikariDataSource pool;
  private final String name;

  private PollingNode(HikariDataSource pool, String name) {
    this.pool = pool;
    this.name = name;
  }

  /** Arguments: name, the server's ports, lease in seconds. */
  public static void main(String[] arguments) {
    String name = arguments[0];
    HikariDataSource pool = Database.pool(arguments[1], POOL, name, false);
    PollingNode node = new PollingNode(pool, name);
    Pollers pollers = node.pollers(Duration.ofSeconds(Long.parseLong(arguments[2])));
    pollers.start();
    Orders.follow(order -> {});
    while (!pollers.health().healthy()) {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(50));
    }
    log.info("{}up", Subscriber.HEALTH);
  }

  private Pollers pollers(Duration lease) {
    Pollers.Builder builder =
        Pollers.builder(PostgresOutbox.on(pool, OutboxTable.named("outbox")), APPLICATION)
            .node(name)
            .events(new Told());
    PLAIN.forEach(poller -> builder.on(poller(poller, lease), this::plain));
    TRANSACTIONAL.forEach(
        poller -> builder.transactional(poller(poller, lease), this::transactional));
    return builder.build();
  }

  private static Poller poller(String name, Duration lease) {
    Cursor cursor =
        name.endsWith("sequence") ? Cursor.sequence("change") : Cursor.serverTime("changed_at");
    return Poller.of(name, Source.table("public", "changes"), cursor, Deletes.ignored())
        .columns("revision")
        .pollInterval(INTERVAL)
        .batchSize(100)
        .retry(Duration.ofMillis(100), Duration.ofSeconds(1))
        .lease(lease);
  }

  private void plain(List<RowChange> rows, PollContext context) throws SQLException {
    begins(context);
    pause();
    try (Connection connection = pool.getConnection()) {
      note("handled", rows, context, connection);
    }
    pause();
    ends(context);
  }

  private void transactional(List<RowChange> rows, PollContext context, Connection connection)
      throws SQLException {
    begins(context);
    pause();
    note("counted", rows, context, connection);
    pause();
    ends(context);
  }

  /** Writes down that a handler runs, so that who freezes this process knows it. */
  private void begins(PollContext context) throws SQLException {
    Database.update(
        pool,
        "insert into handling (poller, process, token) values (?, ?, ?)"
            + " on conflict (poller, process) do update set token = excluded.token",
        context.poller().name(),
        name,
        context.token());
  }

  private void ends(PollContext context) throws SQLException {
    Database.update(
        pool,
        "delete from handling where poller = ? and process = ?",
        context.poller().name(),
        name);
  }

  private void note(String table, List<RowChange> rows, PollContext context, Connection connection)
      throws SQLException {
    try (PreparedStatement insert = connection.prepareStatement(NOTE.formatted(table))) {
      insert.setString(1, context.poller().name());
      insert.setString(2, name);
      insert.setLong(3, context.token());
      insert.setArray(
          4,
          connection.createArrayOf(
              "int8", rows.stream().map(row -> row.key().get("id")).toArray()));
      insert.setArray(
          5,
          connection.createArrayOf(
              "int4", rows.stream().map(row -> row.get("revision", Integer.class)).toArray()));
      insert.executeUpdate();
    }
  }

  private static void pause() {
    ThreadLocalRandom random = ThreadLocalRandom.current();
    boolean slow = random.nextInt(ONE_OF_SO_MANY_IS_SLOW) == 0;
    int longest = slow ? LONGEST_SLOW_PAUSE_MILLIS : LONGEST_PAUSE_MILLIS;
    LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(random.nextInt(longest)));
  }

  /** Writes down that it was told that it has lost a lease. */
  private final class Told implements PollerEvents {
    @Override
    public void failed(String application, String poller, PollerFailure step, Throwable failure) {
      if (!String.valueOf(failure.getMessage()).contains("the lease was lost")) {
        return;
      }
      try {
        Database.update(pool, "insert into told (poller, process) values (?, ?)", poller, name);
      } catch (SQLException e) {
        log.warn("what was told is not on record", e);
      }
    }
  }
}
