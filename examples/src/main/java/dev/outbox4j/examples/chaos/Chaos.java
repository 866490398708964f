package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.Duplicates.Reason;
import dev.outbox4j.examples.chaos.Tally.Count;
import dev.outbox4j.examples.chaos.Watch.Since;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.PauseMigrations;
import dev.outbox4j.migrations.SlotMigrations;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * Runs the fault harness and exits non-zero for any breach. {@code
 * docs/operations/fault-harness.md} has its options, which are system properties.
 */
public final class Chaos {
  private static final Duration LEASE = Duration.ofSeconds(5);
  private static final Duration BETWEEN_FAULTS = Duration.ofSeconds(1);
  private static final Duration LONG_OUTAGE = Duration.ofSeconds(60);
  private static final Duration SHORT_OUTAGE = Duration.ofSeconds(8);
  private static final Duration LONG_LOCK = Duration.ofSeconds(20);
  private static final Duration SHORT_LOCK = Duration.ofSeconds(4);

  /** One of so many: few answers are lost, but what handlers publish is committed, too. */
  private static final int LEAST_ACKNOWLEDGED = 2;

  private static final Duration LONGEST_STANDSTILL = Duration.ofSeconds(60);
  private static final Duration LONG_LISTEN_CUT = Duration.ofMinutes(3);
  private static final Duration SHORT_LISTEN_CUT = Duration.ofSeconds(45);
  private static final Duration LONG_HORIZON = Duration.ofMinutes(10);
  private static final Duration SHORT_HORIZON = Duration.ofSeconds(10);
  private static final long LONGEST_AFTER_SERVER_SECONDS = 3;
  private static final long LONGEST_AFTER_PROMOTION_SECONDS = 5;
  private static final long LONGEST_AFTER_LEASE_SECONDS = 2;

  /** Without these a run proves little. */
  private static final List<Fault> ALWAYS = List.of(Fault.KILL_SUBSCRIBER, Fault.CRASH_SERVER);

  private final Options options;
  private final Report report = new Report();

  private Chaos(Options options) {
    this.options = options;
  }

  /** Takes no arguments. */
  public static void main(String[] arguments)
      throws IOException, InterruptedException, SQLException {
    boolean clean = new Chaos(Options.given()).run();
    System.exit(clean ? 0 : 1);
  }

  private boolean run() throws IOException, InterruptedException, SQLException {
    Path directory = Files.createTempDirectory("outbox-chaos");
    Report.say(
        "fault harness: %d s, seed %d, logs in %s"
            .formatted(options.seconds(), options.seed(), directory));
    report.figure("date", LocalDate.now(ZoneOffset.UTC).toString());
    report.figure("commit", Commit.current());
    report.figure("java", System.getProperty("java.runtime.version"));
    report.figure("minutes", 0); // of faults, once it is known how many there were
    report.figure("minutes_asked", Report.round(options.seconds() / 60.0));
    report.figure("rate", options.rate());
    report.figure("messages_asked", options.messages());
    report.figure("slack_s", options.slack().toSeconds());
    report.figure("seed", options.seed());
    report.figure("processors", Runtime.getRuntime().availableProcessors());
    try (Server server = new Server(directory);
        FaultyProxy network = new FaultyProxy(server::port);
        FaultyProxy listenNetwork = new FaultyProxy(server::port);
        Pooler pooler = pooler(directory, network.port())) {
      report.figure("postgresql", server.version());
      OutboxMigrations.standard().migrate(server.direct());
      OrderedMigrations.of("public", "outbox", Subscriber.ORDERED_QUEUE).migrate(server.direct());
      PauseMigrations.of("public", "outbox").migrate(server.direct());
      SlotMigrations.of("public", "outbox").migrate(server.direct());
      LedgerSchema schema = new LedgerSchema(server.direct(), LEASE);
      schema.create();
      Ledger ledger = new Ledger(server.direct());
      Fleet.Routes routes =
          new Fleet.Routes(
              network.port(),
              pooler == null ? 0 : pooler.port(),
              listenNetwork.port(),
              server.ports());
      Optional<Path> clockFaker = clockFaker();
      Fleet fleet = new Fleet(directory, routes, LEASE.toSeconds(), options.rate(), clockFaker);
      for (int slot = 0; slot < fleet.size(); slot++) {
        Database.update(server.direct(), "create role " + Fleet.listener(slot) + " login");
      }
      try (Pulse pulse = new Pulse(Database.at(server.ports()), ledger);
          PoolerPulse poolerPulse =
              pooler == null
                  ? null
                  : new PoolerPulse(
                      pooler.port(), LEASE.dividedBy(2), fleet::pooledSubscriberNames, ledger)) {
        pulse.start();
        fleet.start();
        if (poolerPulse != null) {
          poolerPulse.start();
        }
        Watch watch = new Watch(server.direct(), fleet, report, options.slack());
        Since begun = watch.since();
        watch.untilAllAreWell(begun);
        ledger.episode("start", begun.instant(), watch.now());
        Scene scene =
            new Scene(
                server,
                network,
                listenNetwork,
                pooler,
                fleet,
                ledger,
                schema,
                watch,
                report,
                new Deeds(options.shams(), server.direct()),
                new Random(options.seed()),
                new Scene.Settings(
                    LEASE,
                    options.isLong() ? LONG_OUTAGE : SHORT_OUTAGE,
                    options.isLong() ? LONG_LOCK : SHORT_LOCK,
                    options.isLong() ? LONG_LISTEN_CUT : SHORT_LISTEN_CUT,
                    options.isLong() ? LONG_HORIZON : SHORT_HORIZON,
                    Ledger.LATE.plus(options.slack()),
                    options.rate()));
        try (Pauses pauses = new Pauses(server.direct(), watch, ledger, options.seed())) {
          pauses.start();
          doFaults(
              new FaultRunner(scene, clockFaker.orElse(null)),
              scene,
              faults(directory, pooler, clockFaker));
        }
        settle(fleet, ledger, server.direct(), pooler, poolerPulse);
        report.figure("stalls_of_the_machine", pulse.stalls());
        report.figure("longest_stall_s", Report.round(pulse.longest().toMillis() / 1e3));
        report.figure("clock_offsets_s", fleet.clockOffsets());
      } finally {
        fleet.killAll();
      }
      judge(ledger);
      Acknowledged acknowledged = Acknowledged.read(directory);
      report.figure("transactions_acknowledged", acknowledged.transactions());
      report.figure("messages_acknowledged", acknowledged.messages());
      if (acknowledged.messages() < ledger.committed() / LEAST_ACKNOWLEDGED) {
        report.breach("only " + acknowledged.messages() + " messages are known to be committed");
      }
      report.mustBeZero("acknowledged_and_gone", acknowledged.gone(server.direct()));
    }
    if (options.report().isPresent()) {
      report.write(options.report().get());
    }
    report.print();
    if (report.clean()) {
      delete(directory);
    }
    return report.clean();
  }

  private @Nullable Pooler pooler(Path directory, int target)
      throws IOException, InterruptedException {
    Pooler pooler =
        options.pooler().equals("none") ? null : Pooler.startIfInstalled(directory, target);
    if (pooler == null && !options.pooler().equals("none")) {
      report.breach("PgBouncer is not there; install it, or do without by -Dchaos.pooler=none");
    }
    report.figure("pooler", pooler == null ? "none" : "PgBouncer in transaction mode, for half");
    return pooler;
  }

  private Optional<Path> clockFaker() {
    Optional<Path> faker = options.clocks().equals("true") ? Optional.empty() : Fleet.clockFaker();
    if (faker.isEmpty() && !options.clocks().equals("true")) {
      report.breach("libfaketime is not there; install it, or do without by -Dchaos.clocks=true");
    }
    report.figure("clocks", faker.isEmpty() ? "true" : "two of four 600 s off");
    return faker;
  }

  /** Those that are asked for and can be done here. */
  private List<Fault> faults(Path directory, @Nullable Pooler pooler, Optional<Path> clockFaker)
      throws IOException, InterruptedException {
    List<Fault> faults = new ArrayList<>(options.faults());
    if (pooler == null) {
      faults.removeAll(List.of(Fault.PAUSE_POOLER, Fault.RESTART_POOLER));
    }
    if (clockFaker.isEmpty()) {
      faults.remove(Fault.JUMP_CLOCK);
    }
    if (!volume(directory)) {
      faults.remove(Fault.FILL_DISK);
    }
    return faults;
  }

  private boolean volume(Path directory) throws IOException, InterruptedException {
    if (options.volume().equals("none")) {
      return false;
    }
    boolean possible = DiskFull.possible(directory);
    if (!possible) {
      report.breach("no volume to fill can be mounted; do without by -Dchaos.volume=none");
    }
    return possible;
  }

  private void doFaults(FaultRunner runner, Scene scene, List<Fault> faults)
      throws IOException, InterruptedException, SQLException {
    List<Fault> round = new ArrayList<>();
    List<Fault> always = new ArrayList<>(ALWAYS);
    always.retainAll(faults);
    long begun = System.nanoTime();
    long until = begun + TimeUnit.SECONDS.toNanos(options.seconds());
    int left = options.once() ? faults.size() : 0;
    while (System.nanoTime() < until || !always.isEmpty() || left > 0) {
      left--;
      if (round.isEmpty()) { // each fault once, in random order, then again
        Report.say("%d committed".formatted(scene.ledger().committed()));
        round.addAll(faults);
        round.addAll(Collections.nCopies(morePairs(runner, faults), Fault.TWO_AT_ONCE));
        Collections.shuffle(round, scene.random());
        round.removeAll(always);
        round.addAll(0, always); // be the run ever so short
      }
      Fault fault = round.remove(0);
      always.remove(fault);
      runner.run(fault);
      List<String> dead = scene.fleet().deadSubscribers();
      if (!dead.isEmpty()) {
        report.breach("subscribers died: " + dead);
      }
      Watch.pause(BETWEEN_FAULTS);
      Report.say(
          "%6d s left, %d in the outbox"
              .formatted(
                  Math.max(0, TimeUnit.NANOSECONDS.toSeconds(until - System.nanoTime())),
                  scene.ledger().unsettled()));
    }
    report.figure("minutes", Report.round((System.nanoTime() - begun) / 60e9));
    if (options.isLong()) {
      report.judgeFaultsDone(faults);
      if (faults.contains(Fault.TWO_AT_ONCE)) {
        report.judgePairsDone(runner.pairsLeft());
      }
    }
  }

  /** A long run comes to each pair of faults in its first round. */
  private int morePairs(FaultRunner runner, List<Fault> faults) {
    return options.isLong() && faults.contains(Fault.TWO_AT_ONCE)
        ? Math.max(0, runner.pairsLeft().size() - 1)
        : 0;
  }

  /** Ends the publishing, lets the subscribers empty the outbox, and stops them gracefully. */
  private void settle(
      Fleet fleet,
      Ledger ledger,
      DataSource direct,
      @Nullable Pooler pooler,
      @Nullable PoolerPulse poolerPulse)
      throws IOException, InterruptedException, SQLException {
    fleet.stopPublishers();
    report.mustBeZero("stuck_rows", unsettled(ledger));
    report.mustBeZero("dead_subscribers", fleet.deadSubscribers().size());
    for (int slot = 0; slot < fleet.size(); slot++) {
      fleet.stopSubscriber(slot);
    }
    fleet.problems().forEach(report::breach);
    judgeLateWrites(fleet.tally().getOrDefault(Count.LATE_WRITES_REFUSED, 0L));
    report.mustBeZero("stopped_with_threads_left", fleet.threadsLeft());
    if (poolerPulse != null) {
      poolerPulse.close();
      report.figure("silences_of_the_pooler", poolerPulse.silences());
      report.figure(
          "longest_silence_of_the_pooler_s", Report.round(poolerPulse.longest().toMillis() / 1e3));
    }
    if (pooler != null) {
      pooler.close(); // it keeps server connections of its own
    }
    long patience = // the server notices a closed socket
        System.nanoTime() + TimeUnit.SECONDS.toNanos(5) + options.slack().toNanos();
    while (connections(direct) > 0 && System.nanoTime() < patience) {
      Watch.pause(Duration.ofMillis(100));
    }
    report.mustBeZero("leaked_connections", fleet.connectionsLeft() + connections(direct));
  }

  /** Rows that are left when no more become fewer; longer than any handler takes. */
  private static long unsettled(Ledger ledger) throws SQLException {
    long least = ledger.unsettled();
    long until = System.nanoTime() + LONGEST_STANDSTILL.toNanos();
    while (least > 0 && System.nanoTime() < until) {
      Watch.pause(Duration.ofMillis(200));
      long left = ledger.unsettled();
      if (left < least) {
        least = left;
        until = System.nanoTime() + LONGEST_STANDSTILL.toNanos();
      }
    }
    return least;
  }

  /**
   * That no write got through without its lease says little if none was tried. A single frozen
   * process may learn of its loss before it tries one.
   */
  private void judgeLateWrites(long refused) {
    report.figure(Count.LATE_WRITES_REFUSED.label(), refused);
    if (refused == 0 && options.isLong() && options.faults().contains(Fault.FREEZE_SUBSCRIBER)) {
      report.breach("no late write was tried, so nothing shows that the fence refuses any");
    }
  }

  private static long connections(DataSource direct) throws SQLException {
    return Database.number(
        direct,
        "select count(*) from pg_stat_activity where application_name ~ '^s[0-9][.]'"
            + " or usename like 'listener%'");
  }

  private void judge(Ledger ledger) throws SQLException {
    long messages = ledger.committed();
    report.figure("messages", messages);
    if (messages < options.messages()) {
      report.breach(messages + " messages are fewer than the " + options.messages() + " asked for");
    }
    Map<String, Long> kinds = ledger.kinds();
    report.figure("kinds", kinds);
    if (options.isLong() && kinds.size() < Ledger.Kind.values().length) {
      report.breach("there was no message of some kind; there were " + kinds.keySet());
    }
    report.figure("dead_letters", ledger.deadLetters());
    report.mustBeZero("lost", ledger.lost());
    report.mustBeZero("handled_after_rollback", ledger.handledAfterRollback());
    report.mustBeZero("stale_acks", ledger.staleAcks());
    report.mustBeZero("poison_not_dead_lettered", ledger.poisonNotDeadLettered());
    report.mustBeZero("healthy_dead_lettered", ledger.healthyDeadLettered());
    report.mustBeZero("dead_lettered_twice", ledger.deadLetteredTwice());
    report.mustBeZero("repeated_transactions", ledger.repeatedTransactions());
    report.mustBeZero("miscounted", ledger.miscounted());
    report.requireSome("chains", ledger.chains());
    report.mustBeZero("broken_chains", ledger.brokenChains());
    report.mustBeZero("handled_after_expiry", ledger.handledAfterExpiry(options.slack()));
    report.mustBeZero("handled_early", ledger.early());
    report.mustBeZero(
        "quiet_messages_late", ledger.quietMessagesLate(Ledger.LATE.plus(options.slack())));
    report.mustBeZero("misdated", ledger.misdated(Subscriber.RETRY_DELAY));
    long inOrder = ledger.handledInOrder();
    report.figure("handled_in_order", inOrder);
    if (inOrder == 0) {
      report.breach("no message of the ordered queue was handled");
    }
    report.mustBeZero("overtaken", ledger.overtaken());
    report.mustBeZero("acks_out_of_turn", ledger.acksOutOfTurn());
    report.mustBeZero("beside_one_of_their_key", ledger.besideOneOfTheirKey(LEASE));
    report.figure("repeated_in_order", ledger.repeatedInOrder());
    judgeRepeatsInOrder(ledger);
    judgePauses(ledger);
    judgeLimit(ledger);
    Duplicates duplicates = ledger.duplicates();
    report.figure("duplicates", duplicates.all());
    report.figure("duplicates_after_kill", duplicates.count(Reason.KILL));
    report.figure("duplicates_after_lease", duplicates.count(Reason.LEASE));
    report.figure("duplicates_after_unheard_effect", duplicates.count(Reason.UNHEARD_EFFECT));
    report.mustBeZero("unexplained_duplicates", duplicates.count(Reason.UNEXPLAINED));
    report.mustBeZero("duplicates_after_lease_of_brief_faults", duplicates.afterBriefFaults());
    report.figure("duplicates_by_fault", duplicates.byFault());
    Map<String, String> bounded = new TreeMap<>();
    duplicates.afterLease().forEach((fault, count) -> bounded.put(fault, count.toString()));
    report.figure("duplicates_after_lease_by_fault", bounded);
    duplicates
        .excesses()
        .forEach(excess -> report.breach("too many duplicates after a lease by " + excess));
    report.figure("lease_s", LEASE.toSeconds());
    long slack = options.slack().toSeconds();
    report.figure("limit_of_each_recovery_s", Watch.LONGEST_RECOVERY.toSeconds() + slack);
    report.judgeRecoveries(
        LEASE.toSeconds() + LONGEST_AFTER_LEASE_SECONDS + slack,
        LONGEST_AFTER_SERVER_SECONDS + slack,
        LONGEST_AFTER_PROMOTION_SECONDS + slack);
  }

  private void judgeRepeatsInOrder(Ledger ledger) throws SQLException {
    report.mustBeZero("unexplained_repeats_in_order", ledger.repeatedInOrderUnexplained());
    RepeatsInOrder repeats = ledger.repeatsInOrder();
    report.mustBeZero("repeats_in_order_of_brief_faults", repeats.ofBriefFaults());
    Map<String, String> bounded = new TreeMap<>();
    repeats.byFault().forEach((fault, count) -> bounded.put(fault, count.toString()));
    report.figure("repeats_in_order_by_fault", bounded);
    repeats.excesses().forEach(excess -> report.breach("too many repeats in order by " + excess));
  }

  private void judgePauses(Ledger ledger) throws SQLException {
    report.figure("pauses", ledger.pauses());
    report.mustBeZero("handled_while_paused", ledger.handledWhilePaused(options.slack()));
  }

  /** That a limit is not exceeded says little if it was never reached. */
  private void judgeLimit(Ledger ledger) throws SQLException {
    report.figure("limit_at_once", Subscriber.LIMIT);
    long most = ledger.mostAtOnce();
    report.figure("most_at_once", most);
    if (most < Subscriber.LIMIT) {
      report.breach("the limit was not reached: never more than " + most + " were handled at once");
    }
    report.mustBeZero(
        "more_at_once_than_the_limit",
        Math.max(0, ledger.mostAtOnceInTheirSlots(LEASE) - Subscriber.LIMIT));
  }

  /** Nothing in it tells more than the report, once the run was clean. */
  static void delete(Path directory) throws IOException {
    try (Stream<Path> files = Files.walk(directory)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    }
  }
}
