package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.Cursor;
import dev.outbox4j.poller.HeldBack;
import dev.outbox4j.poller.Position;
import java.sql.ResultSet;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Optional;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * Keeps below the oldest transaction that has an id and is not over: those before it are, so their
 * rows are there.
 */
final class TransactionIdHorizon implements Horizon {
  private static final int MOST = 64;
  private static final Duration APART = Duration.ofMillis(50);
  private static final long IDS = 1L << 32;

  private final SourceDatabase database;
  private final SourceWatch watch;
  private final String sql;
  private final Deque<Seen> pending = new ArrayDeque<>();
  private final SeenNumbers seen = new SeenNumbers();
  private Instant completeAt = Instant.EPOCH;

  /** Before which id everything had begun that was committed by then. */
  private record Seen(Instant at, long before) {}

  TransactionIdHorizon(
      SourceDatabase database, SourceDescription source, SourceWatch watch, Cursor cursor) {
    this.database = database;
    this.watch = watch;
    this.sql = HorizonSql.transactionIds(source, cursor);
  }

  private record Ids(
      SourceServer server, Instant at, long oldest, long next, @Nullable String greatest) {}

  @Override
  public Found look(Position position) {
    long sent = System.nanoTime();
    Ids ids =
        database.run(
            "look for transaction ids",
            sql,
            statement -> {},
            results -> {
              ResultSet row = results.rows();
              row.next();
              return new Ids(
                  SourceServer.read(row, 2),
                  row.getObject(1, OffsetDateTime.class).toInstant(),
                  Long.parseLong(row.getString(4)),
                  Long.parseLong(row.getString(5)),
                  row.getString(6));
            });
    if (!watch.goesOn(ids.server(), ids.at(), sent, Duration.ZERO, false)) {
      pending.clear();
      seen.forget();
      completeAt = Instant.EPOCH;
    }
    requireReached(ids, position);
    if (pending.isEmpty()
        || Duration.between(pending.getLast().at(), ids.at()).compareTo(APART) >= 0) {
      pending.add(new Seen(ids.at(), ids.next()));
    }
    while (!pending.isEmpty() && pending.getFirst().before() <= ids.oldest()) {
      completeAt = pending.removeFirst().at();
    }
    if (pending.size() > MOST) {
      pending.removeLast();
    }
    if (ids.greatest() != null) {
      seen.see(ids.at(), ids.greatest());
    }
    boolean held = ids.greatest() != null && Long.parseLong(ids.greatest()) >= ids.oldest();
    return new Found(
        new Bound(
            String.valueOf(ids.oldest()),
            false,
            held ? completeAt : ids.at(), // else all that can be seen is before it
            ids.server(),
            null),
        ids.greatest(),
        ids.at(),
        ids.at(),
        held,
        held ? Optional.of(heldBack(ids)) : Optional.empty(),
        0);
  }

  @Override
  public @Nullable Instant completeAt(String before) {
    return seen.before(before);
  }

  /** A database that was restored elsewhere counts its transactions anew. */
  private static void requireReached(Ids ids, Position position) {
    position
        .cursor()
        .map(Long::parseLong)
        .filter(at -> at >= ids.next())
        .ifPresent(
            at -> {
              String found =
                  "the position is transaction %d, and the source's next one is %d: "
                      .formatted(at, ids.next());
              throw new SourceException(
                  found
                      + (ids.server().standby()
                          ? "the standby has not received it yet, or is one of another server"
                          : "it is another server, or was restored, and what is written now would be"
                              + " before the position. Write all rows anew there, or use another"
                              + " cursor, and set the position by PollerControl.set"));
            });
    if (ids.greatest() != null && Long.parseLong(ids.greatest()) >= ids.next()) {
      throw new SourceException(
          "a row has transaction id %s, and the source's next one is %d: it was restored from another"
                  .formatted(ids.greatest(), ids.next())
              + " server, and what is written now would be before such rows. Set the column of all"
              + " rows to pg_current_xact_id()");
    }
  }

  private HeldBack heldBack(Ids ids) {
    String id = String.valueOf(ids.oldest() % IDS);
    Instant since = pending.isEmpty() ? ids.at() : pending.getFirst().at();
    return database.run(
        "look who writes",
        HorizonSql.WRITING,
        statement -> {
          statement.setString(1, id);
          statement.setString(2, id);
        },
        results -> {
          ResultSet row = results.rows();
          boolean found = row.next();
          int process = found ? row.getInt(1) : 0;
          OffsetDateTime began = found ? row.getObject(3, OffsetDateTime.class) : null;
          String gid = found ? row.getString(4) : null;
          return new HeldBack(
              since,
              Duration.between(since, ids.at()),
              process == 0 ? OptionalInt.empty() : OptionalInt.of(process),
              gid == null ? id : gid,
              found ? Optional.ofNullable(row.getString(2)) : Optional.empty(),
              Optional.ofNullable(began).map(OffsetDateTime::toInstant),
              1);
        });
  }
}
