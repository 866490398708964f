package dev.outbox4j.poller;

import dev.outbox4j.poller.internal.Checks;
import java.time.Duration;
import java.time.ZoneOffset;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The column by which changed rows are found: each change gives the row a value that is greater
 * than those before. How it is kept decides up to which value all rows are there, also those of
 * transactions that began earlier and commit later: the poller waits for these. Immutable.
 *
 * <table>
 * <caption>How a cursor is kept</caption>
 * <tr><th>kind</th><th>types</th><th>waits for</th></tr>
 * <tr><td>{@link #transactionId}</td><td>{@code xid8}</td><td>transactions that write,
 * in all databases of the server</td></tr>
 * <tr><td>{@link #sequence}</td><td>{@code smallint}, {@code integer}, {@code bigint},
 * {@code numeric}</td><td>all transactions that were open</td></tr>
 * <tr><td>{@link #serverTime}</td><td>{@code timestamptz}, {@code timestamp}</td><td>all
 * transactions that were open, and a {@linkplain #margin margin}</td></tr>
 * <tr><td>{@link #ascending}</td><td>all but {@code xid8}</td><td>the same, and a greater value
 * </td></tr>
 * </table>
 */
public final class Cursor {
  /** How a cursor is kept. */
  public enum Kind {
    /** By {@link Cursor#transactionId}. */
    TRANSACTION_ID,
    /** By {@link Cursor#sequence}. */
    SEQUENCE,
    /** By {@link Cursor#serverTime}. */
    SERVER_TIME,
    /** By {@link Cursor#ascending}. */
    ASCENDING
  }

  private static final Duration DEFAULT_MARGIN = Duration.ofMillis(500);
  private static final Duration LONGEST_MARGIN = Duration.ofHours(1);

  private final String column;
  private final Kind kind;
  private final NullCursors nulls;
  private final Duration margin;
  private final boolean serialWriters;
  private final @Nullable ZoneOffset offset;

  private Cursor(
      String column,
      Kind kind,
      NullCursors nulls,
      Duration margin,
      boolean serialWriters,
      @Nullable ZoneOffset offset) {
    this.column = Checks.identifier("cursor", column);
    this.kind = kind;
    this.nulls = nulls;
    this.margin = margin;
    this.serialWriters = serialWriters;
    this.offset = offset;
  }

  private static Cursor of(String column, Kind kind) {
    return new Cursor(column, kind, NullCursors.REFUSED, DEFAULT_MARGIN, false, null);
  }

  /**
   * A column of type {@code xid8} that has the id of the transaction that wrote the row: {@code
   * default pg_current_xact_id()}, and a trigger that sets it at each update. The best kind: it
   * waits for transactions that write and for no others, of all databases of the server, and works
   * on a standby.
   *
   * @param column its name
   * @return the cursor
   * @throws IllegalArgumentException if the name is blank, has a NUL, or is longer than 63 bytes
   */
  public static Cursor transactionId(String column) {
    return of(column, Kind.TRANSACTION_ID);
  }

  /**
   * A column that gets the next value of a sequence when a row is inserted, as an identity column
   * does, and when it is updated, if updates are to be seen; in the transaction that takes it. A
   * sequence is refused that sessions cache, that steps by more than one or downwards, or that
   * cycles. Where the reader may select from the sequence, rows beyond what it has given out wait
   * until it has come so far; otherwise what is written with a number of its own, as by an import,
   * must not be greater.
   *
   * @param column its name
   * @return the cursor
   * @throws IllegalArgumentException if the name is blank, has a NUL, or is longer than 63 bytes
   */
  public static Cursor sequence(String column) {
    return of(column, Kind.SEQUENCE);
  }

  /**
   * A column of type {@code timestamptz} that gets {@code now()}, or a later time of the server's
   * clock, by its default, by a trigger or by the statement that writes the row. Not a time that
   * the application's clock tells, and not {@code statement_timestamp()} in a procedure that
   * commits. A column of type {@code timestamp} is one if all sessions write it in one {@linkplain
   * #in offset}. A row that is dated later is handled when its time has come.
   *
   * @param column its name
   * @return the cursor
   * @throws IllegalArgumentException if the name is blank, has a NUL, or is longer than 63 bytes
   */
  public static Cursor serverTime(String column) {
    return of(column, Kind.SERVER_TIME);
  }

  /**
   * A column whose values ascend by another rule: a value that is written is not less than any that
   * was committed before its transaction began. Equal ones may be: rows of the greatest value are
   * not handled until there is a greater one. Ids that an application makes, such as UUIDs of
   * version 7, ULIDs and Snowflake ids, are <b>none</b>: they are made before their transaction
   * begins.
   *
   * @param column its name
   * @return the cursor
   * @throws IllegalArgumentException if the name is blank, has a NUL, or is longer than 63 bytes
   */
  public static Cursor ascending(String column) {
    return of(column, Kind.ASCENDING);
  }

  /**
   * Says in which offset from UTC all sessions write a {@link #serverTime} of type {@code
   * timestamp}: what {@code now()} is there depends on the session's time zone. A zone with summer
   * time has no one offset, and an hour that comes twice: make the column {@code timestamptz} then.
   * If a session writes in another offset, rows are lost.
   *
   * @param offset the offset, such as {@link ZoneOffset#UTC}
   * @return a cursor that differs in this
   * @throws IllegalArgumentException if the cursor is of another kind
   */
  public Cursor in(ZoneOffset offset) {
    Objects.requireNonNull(offset, "offset");
    if (kind != Kind.SERVER_TIME) {
      throw new IllegalArgumentException(
          "cursor '%s' is kept by %s; only one kept by server time has an offset"
              .formatted(column, kind));
    }
    return new Cursor(column, kind, nulls, margin, serialWriters, offset);
  }

  /**
   * Says what becomes of rows whose cursor is null.
   *
   * @param nulls the policy; default {@link NullCursors#REFUSED}
   * @return a cursor that differs in this
   */
  public Cursor nulls(NullCursors nulls) {
    Objects.requireNonNull(nulls, "nulls");
    return new Cursor(column, kind, nulls, margin, serialWriters, offset);
  }

  /**
   * Sets by how much rows of a {@link #serverTime} or {@link #ascending} cursor are handled later,
   * for sessions that have taken their time and cannot be seen to be at work yet. Between both a
   * process of the server does nearly nothing, but it may have to wait for a processor; a row is
   * lost if it waits for longer than this. Where the reader may not see since when others' sessions
   * are at work, rows come by this much later once more. Other kinds need no margin.
   *
   * @param margin from 1 ms to 1 hour; default 500 ms
   * @return a cursor that differs in this
   * @throws IllegalArgumentException if it is out of range, or the cursor is of another kind
   */
  public Cursor margin(Duration margin) {
    if (kind != Kind.SERVER_TIME && kind != Kind.ASCENDING) {
      throw new IllegalArgumentException(
          "cursor '%s' is kept by %s; only one kept by server time, or ascending, has a margin"
              .formatted(column, kind));
    }
    Checks.within("margin", margin, Duration.ofMillis(1), LONGEST_MARGIN);
    return new Cursor(column, kind, nulls, margin, serialWriters, offset);
  }

  /**
   * Says that transactions that write to the source never overlap, since a single one at a time
   * writes, such as a nightly import. The poller then waits for nobody, and needs to see no
   * transactions: <b>if two overlap all the same, rows are lost</b>.
   *
   * @return a cursor that differs in this
   * @throws IllegalArgumentException if it is a {@link #transactionId}, which gains nothing by it
   */
  public Cursor assumingThatWritersNeverOverlap() {
    if (kind == Kind.TRANSACTION_ID) {
      throw new IllegalArgumentException(
          "cursor '%s' is a transaction id, which is safe as it is; leave this out"
              .formatted(column));
    }
    return new Cursor(column, kind, nulls, margin, true, offset);
  }

  /** {@return the column's name} */
  public String column() {
    return column;
  }

  /** {@return how it is kept} */
  public Kind kind() {
    return kind;
  }

  /** {@return what becomes of rows whose cursor is null} */
  public NullCursors nulls() {
    return nulls;
  }

  /** {@return by how much rows are handled later, by server time or ascending} */
  public Duration margin() {
    return margin;
  }

  /** {@return in which offset local times are written, if it was said} */
  public Optional<ZoneOffset> offset() {
    return Optional.ofNullable(offset);
  }

  /** {@return whether it was said that writers never overlap} */
  public boolean writersNeverOverlap() {
    return serialWriters;
  }

  @Override
  public String toString() {
    return column + " (" + kind + (offset == null ? "" : " at " + offset) + ")";
  }
}
