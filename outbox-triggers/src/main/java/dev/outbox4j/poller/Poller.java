package dev.outbox4j.poller;

import dev.outbox4j.poller.internal.Checks;
import dev.outbox4j.poller.internal.CursorType;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.function.Consumer;

/**
 * A poller's definition: its name, what it follows, and how. Immutable; each setting returns a new
 * definition.
 *
 * <p>Source, key, cursor, columns, condition with its values, and deletes are its fingerprint,
 * which is on record. A definition that differs in one of them is not run until somebody
 * {@linkplain PollerControl#adopt adopts} it or {@linkplain PollerControl#reset resets} the poller.
 * The other settings may be changed at any time; they hold from the node's start.
 */
public final class Poller {
  /** The bytes that a name may have in UTF-8: {@value}. */
  public static final int MAX_NAME_BYTES = 200;

  /** How many rows a batch may have: {@value}. */
  public static final int MAX_BATCH_SIZE = 100_000;

  private static final Duration SHORTEST_INTERVAL = Duration.ofMillis(10);
  private static final Duration LONGEST_INTERVAL = Duration.ofDays(1);
  private static final Duration SHORTEST_LEASE = Duration.ofSeconds(1);
  private static final Duration LONGEST_LEASE = Duration.ofHours(1);
  private static final Duration SHORTEST_WAIT = Duration.ofMillis(1);
  private static final Duration LONGEST_WAIT = Duration.ofDays(1);
  private static final int MOST_ATTEMPTS = 1_000;
  private static final int MOST_RATE = 1_000_000;

  private final String name;
  private final Source source;
  private final Cursor cursor;
  private final Deletes deletes;
  private final PollerSettings settings;

  private Poller(
      String name, Source source, Cursor cursor, Deletes deletes, PollerSettings settings) {
    this.name = name;
    this.source = source;
    this.cursor = cursor;
    this.deletes = deletes;
    this.settings = settings;
  }

  /**
   * Defines a poller with the default settings: from the beginning, all columns, 500 rows in a
   * batch, a look each second, a lease of 30 s, and batches that fail come again as a whole.
   *
   * @param name unique in its application; not blank, without control characters, at most {@value
   *     #MAX_NAME_BYTES} bytes in UTF-8. It is the key of the poller's record, and a part of event
   *     ids: under another name it is another poller
   * @param source what it follows
   * @param cursor by which column
   * @param deletes how it learns of deletes; {@link Deletes#ignored()} if it need not
   * @return the definition
   * @throws IllegalArgumentException if the name is not allowed
   */
  public static Poller of(String name, Source source, Cursor cursor, Deletes deletes) {
    Checks.name("poller name", name, MAX_NAME_BYTES);
    Objects.requireNonNull(source, "source");
    Objects.requireNonNull(cursor, "cursor");
    Objects.requireNonNull(deletes, "deletes");
    return new Poller(name, source, cursor, deletes, new PollerSettings());
  }

  private Poller with(Consumer<PollerSettings> change) {
    PollerSettings changed = settings.copy();
    change.accept(changed);
    return new Poller(name, source, cursor, deletes, changed);
  }

  /**
   * Gives the definition another name, such as for a backfill: that is another poller, with a
   * position and event ids of its own. Source, key and cursor tell that two of its rows are one.
   *
   * @param name the name, by the rules of {@link #of}
   * @return the definition
   * @throws IllegalArgumentException if the name is not allowed
   */
  public Poller named(String name) {
    return new Poller(
        Checks.name("poller name", name, MAX_NAME_BYTES), source, cursor, deletes, settings);
  }

  /**
   * Reads some columns only. Those of the cursor, the key and a soft delete are read in any case.
   *
   * @param columns their names, at least one; default all that there are when a node first looks at
   *     the source, and after each failure there: a column that is added later appears at the
   *     node's next start
   * @return the definition
   * @throws IllegalArgumentException if there is none, one twice, or a name is not allowed
   */
  public Poller columns(String... columns) {
    List<String> names = Checks.identifiers("columns", List.of(columns));
    return with(to -> to.columns = names);
  }

  /**
   * Follows only rows that meet a condition. It must depend on the row alone: a row that comes to
   * meet it without a change of its cursor is not seen. Put an operator {@code ?} as {@code ??}.
   *
   * @param condition SQL of your own, in which each {@code ?} stands for a value; never a text from
   *     outside
   * @param values the values: {@code String}, {@code Integer}, {@code Long}, {@code BigDecimal},
   *     {@code Boolean}, {@code UUID}, {@code Instant}, {@code LocalDateTime} or {@code LocalDate}
   * @return the definition
   * @throws IllegalArgumentException if the condition is blank or has a NUL, or a value is of
   *     another type
   */
  public Poller where(String condition, Object... values) {
    Checks.sql("condition", condition);
    List<Object> copy = List.copyOf(Arrays.asList(values));
    copy.forEach(Checks::parameter);
    return with(
        to -> {
          to.condition = condition;
          to.values = copy;
        });
  }

  /**
   * Sets how many rows a batch has at most.
   *
   * @param rows from 1 to {@value #MAX_BATCH_SIZE}; default 500
   * @return the definition
   * @throws IllegalArgumentException if it is out of range
   */
  public Poller batchSize(int rows) {
    Checks.within("batchSize", rows, 1, MAX_BATCH_SIZE);
    return with(to -> to.batchSize = rows);
  }

  /**
   * Sets how long after a look that found no full batch the next one begins. After a full batch the
   * next one begins at once.
   *
   * @param interval from 10 ms to 1 day; default 1 s
   * @return the definition
   * @throws IllegalArgumentException if it is out of range
   */
  public Poller pollInterval(Duration interval) {
    Checks.within("pollInterval", interval, SHORTEST_INTERVAL, LONGEST_INTERVAL);
    return with(to -> to.pollInterval = interval);
  }

  /**
   * Sets for how long a node has the poller unless it renews that, which it does at a third of it.
   * It is what passes before a node that has died is replaced; handlers may take longer.
   *
   * @param lease from 1 s to 1 hour; default 30 s
   * @return the definition
   * @throws IllegalArgumentException if it is out of range
   */
  public Poller lease(Duration lease) {
    Checks.within("lease", lease, SHORTEST_LEASE, LONGEST_LEASE);
    return with(to -> to.lease = lease);
  }

  /**
   * Sets where it begins when it is put on record; later this has no effect.
   *
   * @param position the place; default {@link Position#beginning()}
   * @return the definition
   */
  public Poller startAt(Position position) {
    Objects.requireNonNull(position, "position");
    return with(
        to -> {
          to.start = position;
          to.startsNow = false;
        });
  }

  /**
   * Lets it begin, when it is put on record, behind the greatest cursor that can be seen at its
   * first look; later this has no effect. A row that is committed after that look is not handled if
   * its cursor is not greater: of a {@code date} that is all of that day. Rows that are dated later
   * than now, or numbered beyond the sequence, do not count there, and are handled.
   *
   * @return the definition
   */
  public Poller startNow() {
    return with(to -> to.startsNow = true);
  }

  /**
   * Puts it on record as paused, until somebody {@linkplain PollerControl#resume resumes} it. Later
   * this has no effect.
   *
   * @return the definition
   */
  public Poller startPaused() {
    return with(to -> to.startsPaused = true);
  }

  /**
   * Lets it end behind a cursor: it is finished when no row up to that is left, and looks no more.
   *
   * @param cursor the last cursor that counts, as {@link Position} says
   * @return the definition
   * @throws IllegalArgumentException if it is of no type that a cursor can have
   */
  public Poller until(Object cursor) {
    CursorType.of(cursor).text(cursor);
    return with(
        to -> {
          to.end = Position.after(cursor);
          to.endsNow = false;
        });
  }

  /**
   * Lets it end behind the greatest cursor that can be seen at its first look, as for a backfill of
   * what there is. Rows that are dated later than now, or numbered beyond the sequence, do not
   * count. A poller that is beyond it goes on from there.
   *
   * @return the definition
   */
  public Poller untilNow() {
    return with(
        to -> {
          to.endsNow = true;
          to.end = null;
        });
  }

  /**
   * Sets how many rows it handles in a second at most, counted over each batch.
   *
   * @param rowsPerSecond from 1 to 1,000,000; by default there is no limit
   * @return the definition
   * @throws IllegalArgumentException if it is out of range
   */
  public Poller rate(int rowsPerSecond) {
    Checks.within("rate", rowsPerSecond, 1, MOST_RATE);
    return with(to -> to.rate = rowsPerSecond);
  }

  /**
   * Sets the waits between attempts at a batch whose handler threw. Each is twice the one before.
   *
   * @param first the first wait, from 1 ms; default 1 s
   * @param longest the longest one, from the first to 1 day; default 1 minute
   * @return the definition
   * @throws IllegalArgumentException if one is out of range
   */
  public Poller retry(Duration first, Duration longest) {
    Checks.within("first wait", first, SHORTEST_WAIT, LONGEST_WAIT);
    Checks.within("longest wait", longest, first, LONGEST_WAIT);
    return with(
        to -> {
          to.firstWait = first;
          to.longestWait = longest;
        });
  }

  /**
   * Looks for the rows at fault when a batch has failed so often: the batch is halved again and
   * again, and the handler called with each part; a single row that fails goes to quarantine, and
   * the poller goes on without it. Without this a batch comes again until its handler succeeds.
   *
   * <p>After ten rows in a row no more goes to quarantine until the handler succeeds: then it is no
   * row's fault.
   *
   * <p>A part that has failed is handed over again in its halves, so what a handler did outside a
   * transaction before it threw is done again.
   *
   * @param attempts after how many attempts at the whole batch, from 1 to 1,000
   * @return the definition
   * @throws IllegalArgumentException if it is out of range
   */
  public Poller isolateAfter(int attempts) {
    Checks.within("isolateAfter", attempts, 1, MOST_ATTEMPTS);
    return with(to -> to.isolateAfter = attempts);
  }

  /** {@return its name} */
  public String name() {
    return name;
  }

  /** {@return what it follows} */
  public Source source() {
    return source;
  }

  /** {@return by which column} */
  public Cursor cursor() {
    return cursor;
  }

  /** {@return how it learns of deletes} */
  public Deletes deletes() {
    return deletes;
  }

  /** {@return which columns are read; empty for all} */
  public List<String> columns() {
    return settings.columns;
  }

  /** {@return the condition, if there is one} */
  public Optional<String> condition() {
    return Optional.ofNullable(settings.condition);
  }

  /** {@return the values of the condition} */
  public List<Object> values() {
    return settings.values;
  }

  /** {@return how many rows a batch has at most} */
  public int batchSize() {
    return settings.batchSize;
  }

  /** {@return how long after a look that found no full batch the next one begins} */
  public Duration pollInterval() {
    return settings.pollInterval;
  }

  /** {@return for how long a node has it} */
  public Duration lease() {
    return settings.lease;
  }

  /** {@return where it begins; empty if behind what there is} */
  public Optional<Position> start() {
    return settings.startsNow ? Optional.empty() : Optional.of(settings.start);
  }

  /** {@return whether it is put on record as paused} */
  public boolean startsPaused() {
    return settings.startsPaused;
  }

  /** {@return the place at which it ends, if that is known before} */
  public Optional<Position> end() {
    return Optional.ofNullable(settings.end);
  }

  /** {@return whether it ends behind what there is at its first look} */
  public boolean endsNow() {
    return settings.endsNow;
  }

  /** {@return how many rows it handles in a second at most; empty if there is no limit} */
  public OptionalInt rate() {
    return settings.rate == 0 ? OptionalInt.empty() : OptionalInt.of(settings.rate);
  }

  /** {@return the first wait after a handler that threw} */
  public Duration firstWait() {
    return settings.firstWait;
  }

  /** {@return the longest wait after a handler that threw} */
  public Duration longestWait() {
    return settings.longestWait;
  }

  /** {@return after how many attempts rows at fault are looked for; empty for never} */
  public OptionalInt isolateAfter() {
    return settings.isolateAfter == 0 ? OptionalInt.empty() : OptionalInt.of(settings.isolateAfter);
  }

  @Override
  public String toString() {
    return "Poller[" + name + ", " + source + " by " + cursor + "]";
  }
}
