package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.Cursor;
import dev.outbox4j.poller.Poller;
import dev.outbox4j.poller.Position;
import java.sql.ResultSet;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A source with what was found of it, which is asked anew after each failure. Confined to one
 * thread.
 */
final class FollowedSource {
  private final SourceDatabase database;
  private final Poller poller;
  private final SourceWatch watch;
  private @Nullable Known known;

  /**
   * Creates what has not asked yet.
   *
   * @param database the source's
   * @param poller the definition
   * @param warned told what may cost rows
   */
  FollowedSource(SourceDatabase database, Poller poller, Consumer<String> warned) {
    this.database = database;
    this.poller = poller;
    this.watch = new SourceWatch(database, warned);
  }

  /** What was found, and what reads by it. */
  record Known(SourceDescription description, Fetch fetch, Horizon horizon) {}

  /** Returns what is known; asks if nothing is. */
  Known known() {
    Known found = known;
    if (found == null) {
      SourceDescription description = SourceInspection.describe(database, poller);
      found = new Known(description, Fetch.of(description, poller), horizon(description));
      known = found;
    }
    return found;
  }

  boolean isKnown() {
    return known != null;
  }

  /** The source may be another one when it is back. */
  void forget() {
    known = null;
  }

  private Horizon horizon(SourceDescription description) {
    if (poller.cursor().kind() == Cursor.Kind.TRANSACTION_ID) {
      return new TransactionIdHorizon(database, description, watch, poller.cursor());
    }
    return poller.cursor().writersNeverOverlap()
        ? new NoHorizon(database, description, poller.cursor())
        : new MarkHorizon(database, description, watch, poller.cursor());
  }

  /** Reads the rows behind a position, up to a bound and to the end. */
  List<SourceRow> fetch(Position position, Bound bound, @Nullable Position end) {
    return known().fetch().rows(database, position, bound, end, poller.batchSize());
  }

  /**
   * Whether rows behind a position can be seen that are still to be handled, within a bound or not.
   */
  boolean isAnyBehind(Position position, Horizon.Found now, @Nullable Position end) {
    String greatest = now.greatest();
    if (greatest == null) {
      return false;
    }
    // the greatest one that ascends waits for another row, and not for a transaction
    boolean inclusive = poller.cursor().kind() != Cursor.Kind.ASCENDING;
    Bound seen = new Bound(greatest, inclusive, now.at(), null, null);
    return known().fetch().isAny(database, position, seen, end);
  }

  /** Whether all rows up to the end are before the bound. */
  boolean reaches(Bound bound, Position end) {
    String cursor = bound.cursor();
    String last = end.cursor().orElse(null);
    if (cursor == null || last == null) {
      return true;
    }
    SourceDescription source = known().description();
    OrderedColumn column = source.cursor();
    String sql =
        "select %s %s coalesce((select %s from %s s limit 0), %s)"
            .formatted(
                column.parameter(),
                bound.inclusive() ? ">=" : ">",
                Quoting.column(column.name()),
                source.from(),
                column.parameter());
    List<String> texts = new ArrayList<>(List.of(cursor, last));
    return database.run(
        "compare cursors",
        sql,
        statement -> {
          for (int i = 0; i < texts.size(); i++) {
            column.type().bind(statement, i + 1, texts.get(i));
          }
        },
        results -> {
          ResultSet row = results.rows();
          return row.next() && row.getBoolean(1);
        });
  }
}
