package dev.outbox4j.examples.chaos;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.examples.chaos.Ledger.Kind;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.Published;
import java.io.IOException;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A process that publishes until it is killed: domain row and message in one transaction. It keeps
 * to the messages that are due since the start of the run, and catches up on what it owes, be it
 * its own debt or that of the process it replaces.
 */
final class Publisher {
  private static final Logger log = LoggerFactory.getLogger(Publisher.class);
  private static final int BATCH = 20;

  /** Of one that is behind: a machine that is busy lets it have few turns. */
  private static final int LARGEST_BATCH = 100;

  private static final Duration DELAY = Duration.ofSeconds(2);
  static final Duration EXPIRES_IN = Duration.ofSeconds(5);
  private static final Duration SHORTEST_QUIET = Duration.ofSeconds(5);
  private static final Duration LONGEST_QUIET = Duration.ofSeconds(10);
  private static final Duration SHORTEST_BURST = Duration.ofSeconds(2);
  private static final Duration LONGEST_BURST = Duration.ofSeconds(6);
  private static final Duration LONGEST_LATE = Duration.ofSeconds(30);

  /** How many times as fast as asked it goes to catch up. */
  private static final double HURRY = 2;

  private static final int KEYS = 100;
  private static final long SLOT = 1_000_000_000_000L;
  static final long INCARNATION = 1_000_000_000L;
  static final int POOL = 2;

  private final HikariDataSource pool;
  private final OutboxPublisher publisher =
      PostgresOutbox.publisher(OutboxTable.named("outbox")).build();
  private final int slot;
  private final int perSecond;
  private final long startedAt;
  private final Random random = new Random();
  private long quietAt = System.nanoTime();
  private long lateAt = System.nanoTime();
  private long burstAt = System.nanoTime();
  private @Nullable Connection late;
  private long lateNo;
  private final Acknowledged.Writer acknowledged;
  private final Tally tally = new Tally();
  private String told = "";

  /** Part of its keys: what may be committed out of turn is the last of its keys. */
  private final String keys;

  private int generation;
  private volatile boolean brief;

  private Publisher(
      HikariDataSource pool,
      int slot,
      int perSecond,
      long startedAt,
      String keys,
      Acknowledged.Writer acknowledged) {
    this.keys = keys;
    this.pool = pool;
    this.slot = slot;
    this.perSecond = perSecond;
    this.startedAt = startedAt;
    this.acknowledged = acknowledged;
  }

  /**
   * Arguments: port, whether it is a pooler's, slot, incarnation, messages per second, when the run
   * started in milliseconds of the epoch, and a file for what the server said is committed.
   */
  public static void main(String[] arguments) throws IOException {
    int slot = Integer.parseInt(arguments[2]);
    long incarnation = Long.parseLong(arguments[3]);
    HikariDataSource pool =
        Database.servicePool(
            arguments[0],
            POOL,
            "publisher-" + slot + "." + incarnation,
            Boolean.parseBoolean(arguments[1]));
    try (Acknowledged.Writer acknowledged = Acknowledged.writer(Path.of(arguments[6]))) {
      Publisher publisher =
          new Publisher(
              pool,
              slot,
              Integer.parseInt(arguments[4]),
              Long.parseLong(arguments[5]),
              slot + "." + incarnation,
              acknowledged);
      Orders.follow(publisher::obey);
      publisher.run(first(slot, incarnation));
    }
  }

  private void obey(String order) {
    brief = order.equals(Orders.BRIEF_TRANSACTIONS);
  }

  /** The number of the first message of a process, which has a billion of them. */
  static long first(int slot, long incarnation) {
    return slot * SLOT + incarnation * INCARNATION;
  }

  private void run(long first) throws IOException {
    long done = committed();
    for (long no = first; true; no += LARGEST_BATCH) { // never used again, whatever became of it
      long begun = System.nanoTime();
      int count = (int) Math.max(BATCH, Math.min(LARGEST_BATCH, due() - done));
      try (Connection connection = pool.getConnection()) {
        connection.setAutoCommit(false);
        publish(connection, no, drawnKinds(count), this::drawnQueue);
        if (random.nextInt(10) == 0) {
          connection.rollback();
        } else {
          connection.commit();
          acknowledged.add(no, count);
          done += count;
        }
      } catch (SQLException | RuntimeException outage) {
        generation++;
        tally.publicationFailed(outage);
        log.info("a transaction failed: {}", outage.getMessage());
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(100));
      }
      tell();
      if (begun - quietAt >= 0) {
        no += LARGEST_BATCH;
        publishAside(no, List.of(Kind.QUIET), Subscriber.QUIET_QUEUE);
        quietAt = begun + between(SHORTEST_QUIET, LONGEST_QUIET);
      }
      if (begun - burstAt >= 0) { // more than may be handled at once
        no += LARGEST_BATCH;
        done += publishAside(no, drawnKinds(BATCH), Subscriber.LIMITED_QUEUE);
        burstAt = begun + between(SHORTEST_BURST, LONGEST_BURST);
      }
      if (brief ? late != null : begun - lateAt >= 0) {
        no += LARGEST_BATCH;
        done += late == null ? beginLate(no) : commitLate();
        lateAt = begun + between(Duration.ZERO, late == null ? LONGEST_QUIET : LONGEST_LATE);
      }
      long early = (done - due()) * TimeUnit.SECONDS.toNanos(1) / perSecond;
      long pace = (long) (count * TimeUnit.SECONDS.toNanos(1) / (perSecond * HURRY));
      LockSupport.parkNanos(Math.max(early, pace - (System.nanoTime() - begun)));
    }
  }

  private void tell() {
    String counts = tally.toString();
    if (!counts.equals(told)) {
      log.info("{}{}", Subscriber.TALLY, counts);
      told = counts;
    }
  }

  private long between(Duration least, Duration most) {
    return least.toNanos() + (long) (random.nextDouble() * most.minus(least).toNanos());
  }

  private int publishAside(long no, List<Kind> kinds, String queue) throws IOException {
    try (Connection connection = pool.getConnection()) {
      connection.setAutoCommit(false);
      publish(connection, no, kinds, () -> queue);
      connection.commit();
      acknowledged.add(no, kinds.size());
      return kinds.size();
    } catch (SQLException | RuntimeException outage) {
      log.info("a transaction for queue {} failed: {}", queue, outage.getMessage());
      return 0;
    }
  }

  /** Publishes now what is committed long after: below what subscribers have handled by then. */
  private long beginLate(long no) {
    Connection connection = null;
    try {
      connection = pool.getConnection();
      connection.setAutoCommit(false);
      publish(connection, no, drawnKinds(BATCH), this::drawnQueueWithoutOrder);
      late = connection;
      lateNo = no;
    } catch (SQLException | RuntimeException outage) {
      log.info("a late transaction failed to begin: {}", outage.getMessage());
      close(connection);
    }
    return 0;
  }

  private long commitLate() throws IOException {
    Connection connection = late;
    late = null;
    try {
      if (connection != null) {
        connection.commit();
        acknowledged.add(lateNo, BATCH);
      }
      return BATCH;
    } catch (SQLException outage) {
      log.info("a late transaction failed: {}", outage.getMessage());
      return 0;
    } finally {
      close(connection);
    }
  }

  private static void close(@Nullable Connection connection) {
    try {
      if (connection != null) {
        connection.close();
      }
    } catch (SQLException gone) {
      log.info("a connection could not be closed: {}", gone.getMessage());
    }
  }

  private List<Kind> drawnKinds(int count) {
    return Stream.generate(() -> Kind.drawn(random)).limit(count).toList();
  }

  private long due() {
    return (System.currentTimeMillis() - startedAt) * perSecond / 1_000;
  }

  /** What this one and those it replaces have committed. */
  private long committed() {
    while (true) {
      try {
        return Database.number(
            pool,
            "select count(*) from committed where no >= ? and no < ?",
            slot * SLOT,
            (slot + 1) * SLOT);
      } catch (SQLException outage) {
        log.info("cannot see what was committed: {}", outage.getMessage());
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(100));
      }
    }
  }

  private void publish(Connection connection, long no, List<Kind> drawn, Supplier<String> someQueue)
      throws SQLException {
    int count = drawn.size();
    Long[] numbers = new Long[count];
    String[] kinds = new String[count];
    Double[] delays = new Double[count];
    @Nullable String[] ofKeys = new String[count];
    Boolean[] ordered = new Boolean[count];
    String[] queues = new String[count];
    List<OutboxMessage> messages = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      Kind kind = drawn.get(i);
      numbers[i] = no + i;
      kinds[i] = kind.name();
      delays[i] = kind == Kind.DELAYED ? DELAY.toMillis() / 1e3 : 0;
      queues[i] = kind == Kind.CHAINED ? Subscriber.CHAIN.get(0) : someQueue.get();
      boolean inOrder = queues[i].equals(Subscriber.ORDERED_QUEUE);
      OutboxMessage.Builder message =
          OutboxMessage.to(queues[i]).type(kind.name()).body(body(kind, no + i));
      int key = random.nextInt(KEYS);
      if (inOrder && key != 0) { // some have none
        ofKeys[i] = keys + "." + generation + "-" + key;
        message.orderingKey(ofKeys[i]);
      }
      ordered[i] = inOrder && kind != Kind.DELAYED;
      if (kind == Kind.EXPIRING) {
        message.expiresIn(EXPIRES_IN);
      }
      messages.add(kind == Kind.DELAYED ? message.deliverIn(DELAY).build() : message.build());
    }
    Long[] rows =
        publisher.publish(connection, messages).stream().map(Publisher::rowId).toArray(Long[]::new);
    try (PreparedStatement domain =
        connection.prepareStatement(
            "insert into committed (no, kind, outbox_id, due_at, key, ordered, queue)"
                + " select no, kind, row, now() - clock_offset() + make_interval(secs => delay),"
                + " key, ordered, queue from unnest(?, ?, ?, ?, ?, ?, ?)"
                + " as t(no, kind, row, delay, key, ordered, queue)")) {
      domain.setArray(1, connection.createArrayOf("int8", numbers));
      domain.setArray(2, connection.createArrayOf("text", kinds));
      domain.setArray(3, connection.createArrayOf("int8", rows));
      domain.setArray(4, connection.createArrayOf("float8", delays));
      domain.setArray(5, connection.createArrayOf("text", ofKeys));
      domain.setArray(6, connection.createArrayOf("bool", ordered));
      domain.setArray(7, connection.createArrayOf("text", queues));
      domain.executeUpdate();
    }
  }

  private String drawnQueue() {
    return random.nextInt(10) == 0 ? Subscriber.ORDERED_QUEUE : drawnQueueWithoutOrder();
  }

  /** One in fifty is of the queue that is paused, one in twenty of the last one. */
  private String drawnQueueWithoutOrder() {
    int lot = random.nextInt(100);
    if (lot < 78) {
      return Subscriber.QUEUE;
    }
    return lot < 80 ? Subscriber.PAUSED_QUEUE : Subscriber.MORE_QUEUES.get(lot < 95 ? 0 : 1);
  }

  private static String body(Kind kind, long no) {
    String text = Long.toString(no);
    return kind == Kind.BIG ? text + " ".repeat(Subscriber.BIG - text.length()) : text;
  }

  private static Long rowId(Published published) {
    return published.rowId().orElseThrow();
  }
}
