package dev.outbox4j.examples.chaos;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Batch;
import dev.outbox4j.BatchMessage;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.OutboxSubscribers;
import dev.outbox4j.Outcome;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.SubscriberState;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.examples.chaos.Ledger.Kind;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.Published;
import dev.outbox4j.postgres.notify.r2dbc.R2dbcListen;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import javax.sql.DataSource;
import org.postgresql.ds.PGSimpleDataSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A process that subscribes until it is told to stop or killed. The effect of a message is a row in
 * the ledger, written as the handler's last act on a connection of the service's own, which goes to
 * the server directly; or in the transaction that the handler runs in, which goes where faults are.
 */
final class Subscriber {
  private static final Logger log = LoggerFactory.getLogger(Subscriber.class);
  static final int LEASES_OF_A_LONG_RUN = 3;
  private static final Duration IN_TRANSACTION = Duration.ofMillis(100);
  static final int BIG = 100_000;
  static final String QUIET_QUEUE = "quiet";
  static final String QUEUE = "chaos";
  static final String ORDERED_QUEUE = "chaos-ordered";
  static final String PAUSED_QUEUE = "chaos-paused";
  static final String LIMITED_QUEUE = "chaos-limited";

  static final List<String> MORE_QUEUES = List.of("chaos-more", "chaos-rare");

  /** The queues that a chain goes through, from its first link to its last. */
  static final List<String> CHAIN = List.of(QUEUE, MORE_QUEUES.get(0), ORDERED_QUEUE);

  private static final Set<Kind> IN_TRANSACTIONS = EnumSet.of(Kind.TRANSACTIONAL, Kind.CHAINED);

  /** So many messages of the limited queue may be handled at once, by all processes together. */
  static final int LIMIT = 3;

  private static final Duration IN_A_SLOT = Duration.ofMillis(50);
  static final Duration RETRY_DELAY = Duration.ofMillis(200);
  static final String STOPPED = "STOPPED WITH ";
  static final String HEALTH = "HEALTH ";
  static final String CLOCK = "CLOCK ";
  static final String TALLY = "TALLY ";

  static final int WORKERS = 16;
  private static final int FEW_WORKERS = 4;
  private static final int BATCH = 25;
  private static final int SMALL_BATCH = 5;

  /** The most rows that a process has under its lease at a time, whatever becomes of them. */
  static final int MOST_IN_FLIGHT = WORKERS + 8 * BATCH + FEW_WORKERS + 8 * SMALL_BATCH;

  /** The most of the ordered queue that a process has read and not settled. */
  static final int MOST_IN_ORDER = FEW_WORKERS + 8 * BATCH;

  /** One to write them, and one to look at the end. */
  static final int EFFECTS = 2;

  /** Each handler of each subscriber may have a transaction of its own. */
  static final int TRANSACTIONS = WORKERS + 2 * FEW_WORKERS + 1;

  /** Of each process. */
  static final int LISTENERS = 4;

  static final int POOL = 3;

  /** Each statement of the quiet one has a connection of its own. */
  static final int QUIET_CONNECTIONS = 3;

  static final Duration QUIET_POLL = Duration.ofSeconds(10);

  private static final String COUNT = "update counters set counted = counted + 1 where slot = ?";
  private static final String LINK =
      "insert into committed (no, kind, outbox_id, due_at, queue, origin)"
          + " values (?, ?, ?, now() - clock_offset(), ?, ?)";

  private final OutboxPublisher publisher =
      PostgresOutbox.publisher(OutboxTable.named("outbox")).build();
  private final String name;
  private final EffectWriter effects;
  private final DataSource transactions;
  private final Duration lease;
  private final Tally tally;
  private volatile boolean slow;

  private Subscriber(
      String name, EffectWriter effects, DataSource transactions, Duration lease, Tally tally) {
    this.name = name;
    this.effects = effects;
    this.transactions = transactions;
    this.lease = lease;
    this.tally = tally;
  }

  /**
   * Arguments: name, ports of the pool, of LISTEN and of the effects, lease in seconds, whether the
   * pool's port is a pooler's, who listens, and the port of the quiet subscriber.
   */
  public static void main(String[] arguments) {
    log.info("{}{}", CLOCK, System.currentTimeMillis());
    String name = arguments[0];
    String listener = arguments[6];
    int listenPort = Integer.parseInt(arguments[2]);
    boolean pooled = Boolean.parseBoolean(arguments[5]);
    HikariDataSource pool = Database.pool(arguments[1], POOL, name, pooled);
    HikariDataSource effects =
        Database.servicePool(arguments[3], EFFECTS, name + "-effects", false);
    Tally tally = new Tally();
    FlakyPool flaky = new FlakyPool(pool, tally);
    HikariDataSource ofHandlers =
        Database.servicePool(arguments[1], TRANSACTIONS, transactional(name), pooled);
    FlakyPool flakyOfHandlers = new FlakyPool(ofHandlers, tally);
    Duration lease = Duration.ofSeconds(Long.parseLong(arguments[4]));
    EffectWriter writer = EffectWriter.start(name, effects);
    Subscriber process = new Subscriber(name, writer, flakyOfHandlers, lease, tally);
    OutboxSubscriber busy = process.busy(flaky, R2dbcListen.on(listen(name, listenPort, listener)));
    PGSimpleDataSource single = Database.retrying(arguments[7]);
    single.setApplicationName(quiet(name));
    OutboxSubscriber rare =
        process.quiet(single, R2dbcListen.on(listen(quiet(name), listenPort, listener)));
    HikariDataSource orderly = Database.pool(arguments[1], POOL, ordered(name), pooled);
    FlakyPool flakyToo = new FlakyPool(orderly, tally);
    OutboxSubscriber inOrder =
        process.inOrder(flakyToo, R2dbcListen.on(listen(ordered(name), listenPort, listener)));
    HikariDataSource ofBounded = Database.pool(arguments[1], POOL, bounded(name), pooled);
    FlakyPool flakyThree = new FlakyPool(ofBounded, tally);
    OutboxSubscriber bounded =
        process.bounded(flakyThree, R2dbcListen.on(listen(bounded(name), listenPort, listener)));
    List<OutboxSubscriber> each = List.of(busy, rare, inOrder, bounded);
    OutboxSubscribers all = OutboxSubscribers.of(busy, rare, inOrder, bounded);
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  stop(all, List.of(pool, orderly, ofBounded, ofHandlers), effects, listener);
                  log.info("{}{}", TALLY, tally);
                },
                "chaos-stop"));
    List<FlakyPool> pools = List.of(flaky, flakyToo, flakyThree, flakyOfHandlers);
    Orders.follow(
        order -> {
          pools.forEach(one -> one.handOutDead(order.equals(Orders.DEAD_POOL)));
          process.slow = order.equals(Orders.SLOW_HANDLERS);
        });
    all.start();
    String said = "";
    String counted = "";
    while (busy.health().state() == SubscriberState.RUNNING) {
      String counts = tally.toString();
      if (!counts.equals(counted)) {
        log.info("{}{}", TALLY, counts);
        counted = counts;
      }
      String health =
          each.stream()
              .map(subscriber -> describe(subscriber.health()))
              .filter(text -> !text.equals("up"))
              .findFirst()
              .orElse("up");
      if (!health.equals(said)) {
        log.info("{}{}", HEALTH, health);
        said = health;
      }
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(500));
    }
  }

  private static String describe(SubscriberHealth health) {
    return health.healthy()
        ? "up"
        : "down: listener "
            + health.listener()
            + (health.deadLettersWaiting() > 0 ? ", dead letters wait" : "")
            + ", "
            + health.lastFailure().orElse("no failure");
  }

  /** Longer than the longest handler that is well. */
  private Duration handlerTimeout() {
    return lease.multipliedBy(LEASES_OF_A_LONG_RUN).plusSeconds(2);
  }

  /** The name of the subscriber of the queue in which messages are rare. */
  static String quiet(String name) {
    return name + "q";
  }

  /** The name of the subscriber of the queue that is in order. */
  static String ordered(String name) {
    return name + "o";
  }

  /** The name of the subscriber of the queues that are paused, and limited. */
  static String bounded(String name) {
    return name + "b";
  }

  /** The name of the pool of the transactions that handlers run in. */
  static String transactional(String name) {
    return name + "t";
  }

  private static PostgresqlConnectionFactory listen(String name, int port, String listener) {
    return new PostgresqlConnectionFactory(
        PostgresqlConnectionConfiguration.builder()
            .host("localhost")
            .port(port)
            .database("postgres")
            .username(listener) // by which the server tells whose session it is
            .connectTimeout(Duration.ofSeconds(5))
            .applicationName(name + "-listen")
            .build());
  }

  private OutboxSubscriber busy(DataSource pool, R2dbcListen listen) {
    return build(QUEUE, name, pool, listen)
        .queues(MORE_QUEUES.toArray(String[]::new))
        .deadLetters(DeadLetterQueue.in("outbox_dlq"))
        .workers(WORKERS)
        .batchSize(BATCH)
        .poll(Duration.ofMillis(10), Duration.ofSeconds(2))
        .build();
  }

  /** Polls rarely, so that only a notification brings a message in time. */
  private OutboxSubscriber quiet(DataSource connections, R2dbcListen listen) {
    return build(QUIET_QUEUE, quiet(name), connections, listen)
        .deadLetters(DeadLetterQueue.in("outbox_dlq"))
        .workers(1)
        .poll(Duration.ofMillis(10), QUIET_POLL)
        .pollWithoutListener(QUIET_POLL)
        .build();
  }

  private OutboxSubscriber inOrder(DataSource pool, R2dbcListen listen) {
    return build(ORDERED_QUEUE, ordered(name), pool, listen)
        .ordered()
        .deadLetters(DeadLetterQueue.in("outbox_dlq"))
        .workers(FEW_WORKERS)
        .batchSize(BATCH)
        .poll(Duration.ofMillis(10), Duration.ofSeconds(2))
        .build();
  }

  private OutboxSubscriber bounded(DataSource pool, R2dbcListen listen) {
    return build(PAUSED_QUEUE, bounded(name), pool, listen)
        .queues(LIMITED_QUEUE)
        .pausable()
        .concurrencyLimit(LIMITED_QUEUE, LIMIT)
        .deadLetters(DeadLetterQueue.in("outbox_dlq"))
        .workers(FEW_WORKERS)
        .batchSize(SMALL_BATCH)
        .poll(Duration.ofMillis(10), Duration.ofSeconds(2))
        .build();
  }

  private OutboxSubscriber.Builder build(
      String queue, String subscriber, DataSource connections, R2dbcListen listen) {
    OutboxSubscriber.Builder builder =
        OutboxSubscriber.builder(queue)
            .name(subscriber)
            .store(
                PostgresOutbox.on(connections, OutboxTable.named("outbox"))
                    .store(Duration.ofSeconds(5)))
            .listen(listen.probe(Duration.ofSeconds(2), Duration.ofSeconds(2)))
            .lease(lease)
            .handlerTimeout(handlerTimeout())
            .gracefulTimeout(handlerTimeout().plusSeconds(5))
            .maxDeliveries(1_000_000)
            .retry(RetryPolicy.constant(RETRY_DELAY).attempts(1_000_000).giveUpOn(Poison.class))
            .events(tally);
    builder.onBatch(Kind.BATCHED.name(), String.class, Batch.of(10), this::handleTogether);
    for (Kind kind : IN_TRANSACTIONS) {
      builder.on(
          kind.name(),
          String.class,
          PostgresOutbox.on(transactions, OutboxTable.named("outbox"))
              .transactional(
                  (String text, Delivery delivery, Connection transaction) ->
                      handleIn(transaction, subscriber, kind, Long.parseLong(text), delivery)));
    }
    Set<Kind> others = EnumSet.complementOf(EnumSet.of(Kind.BATCHED));
    others.removeAll(IN_TRANSACTIONS);
    for (Kind kind : others) {
      builder.on(
          kind.name(),
          String.class,
          (text, delivery) -> {
            if (kind == Kind.BIG && text.length() != BIG) {
              throw new Poison("of a large payload %d characters came".formatted(text.length()));
            }
            handle(kind, Long.parseLong(text.strip()), delivery);
          });
    }
    return builder;
  }

  private void handle(Kind kind, long no, Delivery delivery)
      throws SQLException, InterruptedException {
    long begun = System.nanoTime();
    boolean first = delivery.attempt() == 1;
    if (slow) {
      tally.add(Tally.Count.HANDLERS_SLOWED);
      LockSupport.parkNanos(Orders.SLOWNESS.toNanos());
    }
    if (delivery.queue().equals(LIMITED_QUEUE)) {
      LockSupport.parkNanos(IN_A_SLOT.toNanos());
    }
    switch (kind) {
      case FLAKY -> {
        if (delivery.attempt() < 3) {
          throw new IllegalStateException("not yet");
        }
      }
      case POISON -> throw new Poison("poison");
      case ERROR -> {
        if (first) {
          throw new StackOverflowError("once");
        }
      }
      case SLOW -> LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(50));
      case HANGING -> {
        if (first) {
          new CountDownLatch(1).await();
        }
      }
      case STUBBORN -> {
        if (first) {
          ignoreInterrupts(handlerTimeout().plusSeconds(1));
          throw new IllegalStateException("much too late");
        }
      }
      case LONG -> Thread.sleep(lease.multipliedBy(LEASES_OF_A_LONG_RUN).toMillis());
      case EXPIRING -> {
        boolean inOrder = delivery.queue().equals(ORDERED_QUEUE); // its key would wait with it
        boolean putOff = delivery.availableAt().isAfter(delivery.createdAt().plusSeconds(5));
        if (no % 2 == 0 && !putOff && !inOrder) {
          delivery.decide(Outcome.reschedule(Publisher.EXPIRES_IN.multipliedBy(2)));
          return;
        }
      }
      case NORMAL, DELAYED, BIG, QUIET -> {}
      case TRANSACTIONAL, CHAINED, BATCHED -> throw new AssertionError(kind);
    }
    effects.write(List.of(effectOf(no, delivery, begun)));
  }

  /** Takes its time before and after its effect: many faults find it in its transaction. */
  private void handleIn(
      Connection transaction, String subscriber, Kind kind, long no, Delivery delivery)
      throws SQLException {
    long begun = System.nanoTime();
    try (PreparedStatement sayFor = transaction.prepareStatement("select set_config(?, ?, true)")) {
      sayFor.setString(1, LedgerSchema.WRITER);
      sayFor.setString(2, subscriber);
      sayFor.execute();
    }
    LockSupport.parkNanos(IN_TRANSACTION.toNanos());
    EffectWriter.write(transaction, name, List.of(effectOf(no, delivery, begun)));
    try (PreparedStatement count = transaction.prepareStatement(COUNT)) {
      count.setInt(1, (int) (no % LedgerSchema.COUNTERS));
      count.executeUpdate();
    }
    if (kind == Kind.CHAINED) {
      publishNextLink(transaction, no, delivery.queue());
    }
    LockSupport.parkNanos(IN_TRANSACTION.toNanos());
  }

  /** Message and domain row, as a publisher does; nothing behind the last queue. */
  private void publishNextLink(Connection transaction, long origin, String queue)
      throws SQLException {
    int next = CHAIN.indexOf(queue) + 1;
    if (next == CHAIN.size()) {
      return;
    }
    long no;
    try (PreparedStatement draw = transaction.prepareStatement("select nextval('links')");
        ResultSet drawn = draw.executeQuery()) {
      drawn.next();
      no = drawn.getLong(1);
    }
    Published link =
        publisher.publish(
            transaction,
            OutboxMessage.to(CHAIN.get(next))
                .type(Kind.CHAINED.name())
                .body(Long.toString(no))
                .build());
    try (PreparedStatement domain = transaction.prepareStatement(LINK)) {
      domain.setLong(1, no);
      domain.setString(2, Kind.CHAINED.name());
      domain.setLong(3, link.rowId().orElseThrow());
      domain.setString(4, CHAIN.get(next));
      domain.setLong(5, origin);
      domain.executeUpdate();
    }
  }

  /** Some calls fail before they have an effect, as if one of the messages were at fault. */
  private void handleTogether(List<BatchMessage<String>> messages) {
    long begun = System.nanoTime();
    if (messages.size() > 1 && ThreadLocalRandom.current().nextInt(5) == 0) {
      throw new IllegalStateException("not all of them together");
    }
    try {
      effects.write(
          messages.stream()
              .map(each -> effectOf(Long.parseLong(each.body()), each.delivery(), begun))
              .toList());
    } catch (SQLException failure) { // it may have been committed: none is to be handled at once
      messages.forEach(
          message -> message.delivery().decide(Outcome.retry("no effect is known of")));
    }
  }

  private static void ignoreInterrupts(Duration time) {
    long until = System.nanoTime() + time.toNanos();
    for (long left = time.toNanos(); left > 0; left = until - System.nanoTime()) {
      LockSupport.parkNanos(left);
      Thread.interrupted();
    }
  }

  private static EffectWriter.Effect effectOf(long no, Delivery delivery, long begun) {
    boolean inOrder = delivery.queue().equals(ORDERED_QUEUE);
    return new EffectWriter.Effect(no, delivery.id(), delivery.leaseToken(), begun, inOrder);
  }

  private static void stop(
      OutboxSubscribers subscribers,
      List<HikariDataSource> pools,
      HikariDataSource effects,
      String listener) {
    subscribers.stop();
    // before a pool ends what is borrowed
    Leftovers left = Leftovers.find(pools, effects, listener);
    pools.forEach(HikariDataSource::close);
    effects.close();
    log.info("{}{}", STOPPED, left);
  }

  /** What a message that can never be handled throws. */
  static final class Poison extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Poison(String why) {
      super(why);
    }
  }
}
