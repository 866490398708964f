package dev.outbox4j.postgres.internal;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.Idle.Mode;
import dev.outbox4j.spi.ClaimRequest.Range;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.LookAhead;
import dev.outbox4j.spi.LookAhead.Watch;
import dev.outbox4j.spi.ScanBound;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Claims rows, and tells publishers or learns what comes next in the same execution. Thread-safe.
 *
 * <p>The oldest open transaction is read before the rows are looked for and a mark is given
 * afterwards, so that a transaction which was over by the former has been seen by the claim, and
 * one that may have missed an announcement made earlier is below the latter.
 */
final class ClaimStatement {
  /**
   * A form of the text.
   *
   * @param kind how rows are leased
   * @param whole true if the whole queue is looked at
   */
  private record Form(Mode mode, Kind kind, boolean whole) {
    String template() {
      String claim = kind.text;
      // what a bound is there to spare is not to be walked after all
      String lookAhead = whole ? StoreSql.LOOK_AHEAD_WHOLE_QUEUE : StoreSql.LOOK_AHEAD;
      return switch (mode) {
        case UNCHANGED -> claim;
        case AWAKE -> claim + ";\n" + StoreSql.AWAKE;
        case LOOK_AHEAD -> claim + ";\n" + lookAhead;
        case SLEEP -> claim + ";\n" + StoreSql.SLEEP + ";\n" + lookAhead;
      };
    }
  }

  /** How rows are leased. */
  private enum Kind {
    PLAIN(StoreSql.CLAIM),
    /** Payloads are measured. */
    MEASURED(StoreSql.CLAIM_MEASURED),
    /** Payloads are measured, and each row takes a slot. */
    IN_SLOTS(StoreSql.CLAIM_IN_SLOTS);

    private final String text;

    Kind(String text) {
      this.text = text;
    }
  }

  private final Preamble preamble;
  private final PayloadSizes sizes = new PayloadSizes();
  private final Map<Form, Sql> texts = new HashMap<>();
  private final Sql peek;

  ClaimStatement(Preamble preamble, OutboxTable table) {
    this.preamble = preamble;
    for (Mode mode : Mode.values()) {
      for (Kind kind : Kind.values()) {
        for (boolean whole : new boolean[] {false, true}) {
          Form form = new Form(mode, kind, whole);
          texts.put(form, Preamble.before(form.template(), table));
        }
      }
    }
    this.peek = Preamble.before(StoreSql.PEEK, table);
  }

  ClaimResult execute(Connection connection, ClaimRequest request) throws SQLException {
    Idle idle = request.idle();
    Map<String, Object> values = values(request);
    values.put("lease", ServerTime.seconds(request.lease()));
    values.put("owner", request.owner());
    values.put("max_bytes", request.maxBytes());
    values.put("wake_in", ServerTime.seconds(idle.wakeIn()));
    values.put("new_mark", isNewMark(idle));
    values.put("slots", request.slots());
    Form form = new Form(idle.mode(), kind(request), request.range().equals(Range.ALL));
    return preamble.run(
        connection,
        Objects.requireNonNull(texts.get(form)),
        values,
        request.timeLimit(),
        (start, results) -> {
          RowReader.Rows rows;
          try (ResultSet claimed = results.next().rows()) {
            rows = read(claimed, request.queue(), start.now(), form.kind());
          }
          sizes.saw(request.queue(), rows.rows());
          boolean outOfSlots = rows.outOfSlots(request.limit());
          boolean full =
              outOfSlots || rows.picked() >= request.limit() || rows.picked() > rows.rows().size();
          return new ClaimResult(
              rows.rows(),
              full,
              lookAhead(results, idle, start.oldest()),
              start.now(),
              Set.of(),
              null,
              outOfSlots);
        });
  }

  private Kind kind(ClaimRequest request) {
    if (request.slots() > 0) {
      return Kind.IN_SLOTS;
    }
    return sizes.mayExceed(request) ? Kind.MEASURED : Kind.PLAIN;
  }

  private static RowReader.Rows read(ResultSet rows, String queue, Instant now, Kind kind)
      throws SQLException {
    return kind == Kind.IN_SLOTS
        ? RowReader.readInSlots(rows, queue, now)
        : RowReader.read(rows, queue, now, kind == Kind.MEASURED);
  }

  /** Returns the places of rows that a claim would lease, in their order. */
  List<ScanBound> peek(Connection connection, ClaimRequest request) throws SQLException {
    return preamble.run(
        connection,
        peek,
        values(request),
        request.timeLimit(),
        (start, results) -> {
          List<ScanBound> places = new ArrayList<>();
          try (ResultSet rows = results.next().rows()) {
            while (rows.next()) {
              places.add(new ScanBound(ServerTime.read(rows, 1), rows.getLong(2)));
            }
          }
          return places;
        });
  }

  private static Map<String, Object> values(ClaimRequest request) {
    ScanBound above = request.range().above();
    ScanBound upTo = request.range().upTo();
    Map<String, Object> values = new HashMap<>();
    values.put("queue", request.queue());
    values.put("limit", (long) request.limit());
    values.put("above_at", instant(above, OffsetDateTime.MIN));
    values.put("above_id", above == null ? Long.MIN_VALUE : above.id());
    values.put("up_to_at", instant(upTo, OffsetDateTime.MAX));
    values.put("up_to_id", upTo == null ? Long.MAX_VALUE : upTo.id());
    return values;
  }

  /** The driver gives, and takes, infinity as the least and the greatest instant there is. */
  private static OffsetDateTime instant(@Nullable ScanBound bound, OffsetDateTime ifNull) {
    if (bound == null) {
      return ifNull;
    }
    if (!ServerTime.isCommon(bound.availableAt())) {
      return bound.availableAt().isBefore(Instant.EPOCH) ? OffsetDateTime.MIN : OffsetDateTime.MAX;
    }
    return bound.availableAt().atOffset(ZoneOffset.UTC);
  }

  private static boolean isNewMark(Idle idle) {
    Long mark = idle.mark();
    return mark != null && mark == Idle.NEW_MARK;
  }

  private static @Nullable LookAhead lookAhead(Results results, Idle idle, long oldest)
      throws SQLException {
    if (idle.mode() != Mode.LOOK_AHEAD && idle.mode() != Mode.SLEEP) {
      return null;
    }
    if (idle.mode() == Mode.SLEEP) {
      results.next();
    }
    try (ResultSet ahead = results.next().rows()) {
      ahead.next();
      Instant now = ServerTime.read(ahead, 1);
      Instant due = ServerTime.readNullable(ahead, 4);
      Long mark = idle.mark();
      return new LookAhead(
          due == null || !ServerTime.isCommon(due) ? null : ServerTime.between(now, due),
          watch(ahead.getInt(2)),
          ahead.getLong(3),
          mark != null && mark != Idle.NEW_MARK && oldest >= mark);
    }
  }

  /** Zero stands for null. */
  private static Watch watch(int onWatch) {
    return switch (onWatch) {
      case 0 -> Watch.VACANT;
      case 1 -> Watch.TAKEN;
      default -> Watch.MINE;
    };
  }
}
