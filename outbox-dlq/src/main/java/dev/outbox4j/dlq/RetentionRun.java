package dev.outbox4j.dlq;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.dlq.JdbcPartitions.HistoryKey;
import dev.outbox4j.dlq.JdbcPartitions.Look;
import dev.outbox4j.dlq.JdbcWorklist.Run;
import dev.outbox4j.dlq.PartitionSql.Range;
import dev.outbox4j.dlq.Patience.Result;
import dev.outbox4j.internal.schema.Period;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One run: partitions that will be wanted, letters and partitions that are not wanted any more.
 * Every step looks for itself whether it is still right, so that a run that was taken for dead does
 * no harm. Confined to the thread that runs.
 */
final class RetentionRun {
  private static final Logger log = LoggerFactory.getLogger(DeadLetterRetention.class);

  /** As much as the server reads while it keeps out writers: 1 MiB. */
  private static final long LITTLE = 1L << 20;

  /** After the end of a partition, until no transaction that began before is likely to be open. */
  private static final Duration SETTLED = Duration.ofHours(1);

  /**
   * Before a time of which the default partition is said to have no letters: so long the server may
   * read it, until that is not refused any more.
   */
  private static final Duration AHEAD = Duration.ofHours(2);

  /** Of one that its limit ends, and the time until it is told. */
  private static final Duration LONGEST_VALIDATION = Duration.ofMinutes(30);

  private static final String HISTORIES = "Histories of letters of dropped partitions";
  private static final String OVERLAPS_LETTERS = "23514";
  private static final String HAS_UNRESOLVED = "55000";
  private static final String NOT_THERE = "42P01";

  private final JdbcWorklist worklist;
  private final JdbcPartitions partitions;
  private final RetentionSettings settings;
  private final Patience patience;
  private final LetterRun letters;

  private final List<String> created = new ArrayList<>();
  private final List<String> dropped = new ArrayList<>();
  private final List<String> held = new ArrayList<>();
  private final List<String> postponed = new ArrayList<>();
  private final List<String> ended = new ArrayList<>();
  private boolean partitioned;
  private boolean tooLarge;
  private int found;
  private long caught;
  private @Nullable OutboxStoreException refusal;

  RetentionRun(
      JdbcWorklist worklist,
      JdbcPartitions partitions,
      RetentionSettings settings,
      Patience patience) {
    this.worklist = worklist;
    this.partitions = partitions;
    this.settings = settings;
    this.patience = patience;
    this.letters =
        new LetterRun(worklist, WorklistSql.RETENTION, settings.by(), "", settings.words());
  }

  /**
   * Runs, unless another process does.
   *
   * @param pause unless one has ended within this time
   * @return what it has done; empty if it was not to run
   */
  Optional<DeadLetterRetentionReport> run(Duration pause) {
    Optional<Run> begun = worklist.beginRetention(settings.by(), settings.words(), pause);
    if (begun.isEmpty()) {
      return Optional.empty();
    }
    DeadLetterReport report = letters.audited(begun.get(), this::work);
    return Optional.of(
        new DeadLetterRetentionReport(
            partitioned,
            report.done(),
            report.refused() + report.passedBy(),
            created,
            dropped,
            held,
            postponed,
            ended,
            caught,
            found + created.size() - dropped.size(),
            report.finished()));
  }

  private boolean work(Run run) {
    Look look = patience.get(partitions::look);
    partitioned = look.partitioned();
    found = look.partitions().size();
    boolean finished =
        (partitioned ? onPartitions(run, look) : deleteDue(run, worklist)) && deleteHistories(run);
    if (refusal != null) {
      throw refusal; // what stopped nothing else
    }
    return finished;
  }

  private boolean onPartitions(Run run, Look look) {
    Period period =
        look.period()
            .orElseThrow(
                () ->
                    new OutboxException(
                        "The comment on the dead-letter table "
                            + worklist.name()
                            + " does not say how it is partitioned; add 'partitioned by month', week or"
                            + " day to it"));
    include(look);
    boolean large = look.partitions().stream().anyMatch(RetentionRun::isLarge);
    if (!large) {
      create(run, look, period);
    }
    for (Partition partition : look.partitions()) {
      if (large && partition.isDefault()) {
        // what is old first: a validation whose client is gone goes on, with a lock that drops need
        create(run, look, period);
      }
      if (Thread.currentThread().isInterrupted()
          || !retain(run, look, partition)) { // the default one is the last
        return false;
      }
      letters.giveSignOfLife(run);
    }
    return true;
  }

  // ---- coming partitions

  /** A process that died while it created a partition has left a constraint. */
  private void include(Look look) {
    for (Partition partition : look.partitions()) {
      if (partition.isDefault() && partition.constrained()) {
        include(look, partition);
      }
    }
  }

  /** Also after an interrupt, with which a pool would give no connection. */
  private void include(Look look, Partition partition) {
    boolean interrupted = Thread.interrupted();
    try {
      orPostpone(
          interrupted ? patience.once() : patience,
          partition.name(),
          () -> partitions.include(look, partition));
    } catch (OutboxStoreException e) {
      note(partition.name(), e);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private void create(Run run, Look look, Period period) {
    LocalDate today = period.firstDay(look.now());
    Instant reach = look.now().plus(settings.reach());
    for (int n = 0; n <= settings.ahead() || begin(period, today, n).isBefore(reach); n++) {
      Instant to = begin(period, today, n + 1);
      Instant from = free(look, begin(period, today, n), to);
      if (from.isBefore(to)
          && look.partitions().stream().noneMatch(other -> other.overlaps(from, to))
          && !Thread.currentThread().isInterrupted()) {
        create(run, look, new Range(from, to));
        letters.giveSignOfLife(run);
      }
    }
  }

  private static boolean isLarge(Partition partition) {
    return partition.isDefault() && partition.bytes() > LITTLE;
  }

  private static Instant begin(Period period, LocalDate today, int periods) {
    return Period.midnight(period.after(today, periods));
  }

  /** Where the partitions end that take a part of a time, if they do. */
  private static Instant free(Look look, Instant from, Instant to) {
    Instant free = from;
    for (Partition partition : look.partitions()) {
      Instant end = partition.to();
      if (end != null && end.isAfter(free) && !end.isAfter(to) && partition.overlaps(free, to)) {
        free = end;
      }
    }
    return free;
  }

  private void create(Run run, Look look, Range range) {
    String name = partitions.newName(range.from());
    Optional<Partition> large =
        look.partitions().stream().filter(RetentionRun::isLarge).findFirst();
    try {
      if (large.isEmpty()) {
        created(look, name, range);
      } else if (range.from().isAfter(look.now().plus(AHEAD))) {
        beside(run, large.get(), look, name, range);
      } // else its letters come to the default partition now or soon: they cannot be excluded
    } catch (OutboxStoreException e) {
      if (is(e, OVERLAPS_LETTERS)) {
        discard(look, name);
      } else {
        note(name, e);
      }
    }
  }

  private void discard(Look look, String name) {
    log.warn(
        "Partition {} of dead letters cannot be created, since the default partition has letters of"
            + " its time; these, and those that come, stay there until they are due",
        name);
    try {
      orPostpone(name, () -> partitions.discard(look, name));
    } catch (OutboxStoreException e) {
      note(name, e);
    }
  }

  private boolean created(Look look, String name, Range range) {
    boolean done =
        orPostpone(name, () -> partitions.create(look, name))
            && orPostpone(name, () -> partitions.attach(look, name, range));
    if (done) {
      created.add(name);
    }
    return done;
  }

  /**
   * Says to the server, by a constraint, that the default partition has no letters of a time. To
   * read it for another time takes as long as it took before.
   */
  private void beside(Run run, Partition large, Look look, String name, Range range) {
    if (tooLarge) {
      postpone(name, Result.ENDED);
      return;
    }
    if (!orPostpone(name, () -> partitions.exclude(look, large, range))) {
      return;
    }
    try {
      if (validated(run, large, name)) {
        created(look, name, range);
      }
    } finally {
      include(look, large);
    }
  }

  /**
   * The server reads all letters of the partition, which a limit of its own or of the client's may
   * end: once in a run.
   */
  private boolean validated(Run run, Partition large, String name) {
    letters.giveSignOfLife(run, LONGEST_VALIDATION);
    try {
      Result result = patience.unlessEnded().does(() -> partitions.validate(large));
      if (result == Result.DONE) {
        return true;
      }
      tooLarge = result == Result.ENDED;
      postpone(name, result);
    } catch (OutboxStoreException e) {
      if (!e.outcomeUnknown()) {
        throw e;
      }
      tooLarge = true;
      postpone(name, Result.ENDED); // if the server is gone, what comes next fails
    } finally {
      letters.giveSignOfLife(run, Duration.ZERO);
    }
    return false;
  }

  // ---- old partitions

  /**
   * Drops a partition, or finds out why not; false if it was interrupted. What is in the way of one
   * stops no other.
   */
  private boolean retain(Run run, Look look, Partition partition) {
    try {
      return partition.isDefault()
          ? lookAtDefault(run, partition)
          : retained(run, partition, look.now());
    } catch (OutboxStoreException e) {
      if (is(e, HAS_UNRESOLVED)) {
        held.add(partition.name());
      } else if (!is(e, NOT_THERE)) { // else somebody else was faster
        note(partition.name(), e);
      }
      return true;
    }
  }

  private boolean retained(Run run, Partition partition, Instant now) {
    Duration keepAll = settings.keepAll();
    if (keepAll != null && partition.isOlderThan(keepAll, now)) {
      drop(partition, true);
      return true;
    }
    if (!partition.isOlderThan(SETTLED, now)) {
      return true;
    }
    boolean due = partition.isOlderThan(settings.keepResolved(), now);
    if (partitions.hasUnresolved(partition)) {
      if (partition.closedAt() != null) {
        orPostpone(partition.name(), () -> partitions.reopen(partition));
      }
      if (due) {
        held.add(partition.name());
      }
      return !due || deleteDue(run, worklist.ofPartition(partition.quoted()));
    }
    if (partition.closedAt() == null) {
      orPostpone(partition.name(), () -> partitions.close(partition));
    } else if (partition.isClosedFor(settings.keepResolved(), now)) {
      drop(partition, false);
    }
    return true;
  }

  private void drop(Partition partition, boolean withUnresolved) {
    if (orPostpone(
        partition.name(),
        () -> partitions.drop(partition, withUnresolved, settings.by(), words(partition)))) {
      dropped.add(partition.name());
    }
  }

  private static String words(Partition partition) {
    return "partition %s, letters that failed%s before %s; the count is the server's estimate"
        .formatted(
            partition.name(),
            partition.from() == null ? "" : " from " + partition.from(),
            partition.to());
  }

  // ---- histories

  /**
   * Deletes those of letters that went with a partition, now or in a run that came to no end: after
   * that, so that to drop it takes no longer. False if it was interrupted.
   */
  private boolean deleteHistories(Run run) {
    try {
      List<Long> drops = partitions.drops();
      return drops.isEmpty() || deleteHistories(run, drops);
    } catch (OutboxStoreException e) {
      note(HISTORIES, e);
      return true;
    }
  }

  private boolean deleteHistories(Run run, List<Long> drops) {
    Optional<HistoryKey> next = Optional.of(HistoryKey.START);
    while (next.isPresent()) {
      if (Thread.currentThread().isInterrupted()) {
        return false;
      }
      next = partitions.deleteHistories(next.get(), drops);
      letters.giveSignOfLife(run);
    }
    partitions.endDrops(drops);
    return true;
  }

  // ---- letters one by one

  private boolean lookAtDefault(Run run, Partition partition) {
    boolean finished = deleteDue(run, worklist.ofPartition(partition.quoted()));
    caught = partitions.count(partition);
    return finished;
  }

  private boolean deleteDue(Run run, JdbcWorklist of) {
    Duration keepAll = settings.keepAll();
    return delete(
            run, of, DeadLetterFilter.resolvedBefore(before(run, settings.keepResolved())), false)
        && (keepAll == null
            || delete(run, of, DeadLetterFilter.failedBefore(before(run, keepAll)), true));
  }

  private static Instant before(Run run, Duration kept) {
    return run.begun().minus(kept);
  }

  private boolean delete(Run run, JdbcWorklist of, DeadLetterFilter due, boolean forced) {
    DeadLetterFilter meant =
        due.otherwise(forced ? DeadLetterFilter.any() : DeadLetterFilter.resolved());
    return letters.each(
        run, of, new Selected(meant.terms()), false, (each, some) -> of.purge(each, some, forced));
  }

  // ---- what others are in the way of

  private boolean orPostpone(String what, Patience.Step step) {
    return orPostpone(patience, what, step);
  }

  private boolean orPostpone(Patience howOften, String what, Patience.Step step) {
    Result result = howOften.does(step);
    if (result != Result.DONE) {
      postpone(what, result);
    }
    return result == Result.DONE;
  }

  private void postpone(String what, Result result) {
    List<String> told = result == Result.ENDED ? ended : postponed;
    if (!told.contains(what)) {
      told.add(what);
    }
  }

  /** What is in the way of one thing stops no other, unless the server is not there. */
  private void note(String what, OutboxStoreException e) {
    if (e.fault() == Fault.CONNECTION || e.outcomeUnknown()) {
      throw e;
    }
    Optional<Result> result = Result.of(e);
    if (result.isPresent()) {
      postpone(what, result.get());
    } else if (refusal == null) {
      refusal = e;
    } else {
      refusal.addSuppressed(e);
    }
  }

  private static boolean is(OutboxStoreException e, String state) {
    return e.sqlState().filter(state::equals).isPresent();
  }
}
