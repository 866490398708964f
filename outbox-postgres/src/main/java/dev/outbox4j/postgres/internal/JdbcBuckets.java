package dev.outbox4j.postgres.internal;

import dev.outbox4j.Payload;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.spi.BucketStore;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.Idle.Mode;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.History;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.LookAhead;
import dev.outbox4j.spi.LookAhead.Watch;
import dev.outbox4j.spi.StoredMessage;
import dev.outbox4j.spi.Written;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/** Ordered queues over JDBC. Thread-safe; renders its statements when it is made. */
final class JdbcBuckets implements BucketStore {
  private static final Payload NOT_LOADED = Payload.wrap(new byte[0]);
  private static final Part[] PARTS = Part.values();
  private static final long NO_BUCKET = -1;

  private final Jdbc jdbc;
  private final Sql join;
  private final Sql leave;
  private final Sql reserve;
  private final Sql sweep;
  private final Sql due;
  private final Sql greatestId;
  private final Map<Mode, Sql> reads = new EnumMap<>(Mode.class);
  private final Map<Mode, Sql> readsOfRanges = new EnumMap<>(Mode.class);
  private final FencedStatement<LeaseRef> count;

  JdbcBuckets(Jdbc jdbc, OutboxTable table, LockedRows locked) {
    this.jdbc = jdbc;
    this.join = Preamble.before(BucketSql.JOIN, table);
    this.leave = Preamble.before(BucketSql.LEAVE, table);
    this.reserve = Preamble.before(BucketSql.RESERVE, table);
    this.greatestId = Preamble.before(BucketSql.GREATEST_ID, table);
    this.due = Preamble.before(BucketSql.DUE, table);
    this.sweep = Preamble.before(BucketSql.SWEEP, table);
    for (Mode mode : Mode.values()) {
      reads.put(mode, Preamble.before(withMode(BucketSql.READ, mode), table));
      readsOfRanges.put(mode, Preamble.before(withMode(BucketSql.READ_RANGES, mode), table));
    }
    this.count =
        new FencedStatement<>(
            "count", jdbc, new FencedSql(FencedSql.COUNT), Function.identity(), locked, false);
  }

  private static String withMode(String read, Mode mode) {
    return switch (mode) {
      case UNCHANGED -> read;
      case AWAKE -> read + ";\n" + BucketSql.AWAKE;
      case LOOK_AHEAD -> read + ";\n" + BucketSql.LOOK_AHEAD;
      case SLEEP -> read + ";\n" + BucketSql.SLEEP + ";\n" + BucketSql.LOOK_AHEAD;
    };
  }

  @Override
  public Ownership join(Join request) {
    Map<String, Object> values = new HashMap<>();
    values.put("queue", request.queue());
    values.put("owner", request.owner());
    values.put("lease", ServerTime.seconds(request.lease()));
    values.put("given", longs(request.given(), Owned::bucket));
    values.put("given_epochs", longs(request.given(), Owned::epoch));
    values.put("seen_up_to", request.seenUpTo());
    return run(
        "join",
        join,
        values,
        null,
        (start, results) -> {
          for (int i = 0; i < 4; i++) {
            results.next();
          }
          try (ResultSet rows = results.next().rows()) {
            return ownership(rows);
          }
        });
  }

  private static Ownership ownership(ResultSet rows) throws SQLException {
    List<Owned> owned = new ArrayList<>();
    int owners = 0;
    int buckets = 0;
    String rowByRow = null;
    while (rows.next()) {
      owners = rows.getInt(1);
      buckets = rows.getInt(2);
      rowByRow = rows.getString(3);
      int bucket = rows.getInt(4);
      if (!rows.wasNull()) {
        owned.add(new Owned(bucket, rows.getLong(5), rows.getLong(6), rows.getLong(7)));
      }
    }
    return new Ownership(owned, owners, buckets, rowByRow);
  }

  @Override
  public void leave(String queue, String owner, Set<Integer> kept, long seenUpTo) {
    run(
        "leave",
        leave,
        Map.of(
            "queue",
            queue,
            "owner",
            owner,
            "kept",
            longs(kept, Integer::longValue),
            "seen_up_to",
            seenUpTo),
        null,
        (start, results) -> start);
  }

  @Override
  public boolean reserve(String queue, String owner, long upTo) {
    return run(
        "reserve",
        reserve,
        Map.of("queue", queue, "owner", owner, "read_up_to", upTo),
        null,
        (start, results) -> results.next().updated() > 0);
  }

  @Override
  public long greatestId() {
    return run(
        "read",
        greatestId,
        Map.of(),
        null,
        (start, results) -> {
          try (ResultSet row = results.next().rows()) {
            row.next();
            return row.getLong(1);
          }
        });
  }

  @Override
  public Written count(List<LeaseRef> leases) {
    return count.execute(leases, rows -> Map.of());
  }

  @Override
  public Read read(ReadRequest request) {
    if (!request.sweep().isEmpty()) {
      return find("sweep", sweep, request, sweepValues(request));
    }
    if (!request.due().isEmpty()) {
      return find("read", due, request, dueValues(request));
    }
    Idle idle = request.idle();
    Map<String, Object> values = new HashMap<>();
    values.put("queue", request.queue());
    values.put("owner", request.owner());
    values.put("buckets", longs(request.portions(), portion -> portion.range().bucket()));
    values.put("above", longs(request.portions(), portion -> portion.range().above()));
    values.put("up_to", longs(request.portions(), portion -> portion.range().upTo()));
    values.put("limits", longs(request.portions(), Portion::limit));
    values.put("limit", (long) request.limit());
    values.put("skipped_keys", request.skippedKeys().toArray(String[]::new));
    values.put("keys", request.keys().stream().map(KeyRange::key).toArray(String[]::new));
    values.put("keys_above", longs(request.keys(), KeyRange::above));
    values.put("keys_up_to", longs(request.keys(), KeyRange::upTo));
    values.put("key_limit", (long) request.keyLimit());
    values.put("ids", longs(request.ids(), Long::longValue));
    values.put("max_bytes", request.maxBytes());
    values.put("row_bytes", request.rowBytes());
    values.put("wake_in", ServerTime.seconds(idle.wakeIn()));
    values.put("new_mark", request.mark() || isNewMark(idle));
    values.put("newest_of", request.newestOf() == null ? NO_BUCKET : (long) request.newestOf());
    return run(
        "read",
        Objects.requireNonNull((request.rowBytes() > 0 ? readsOfRanges : reads).get(idle.mode())),
        values,
        request.timeLimit(),
        (start, results) -> {
          List<Row> rows = rows(results, request.queue(), start.now());
          if (request.rowBytes() > 0) { // which the server has not sorted
            rows.sort(Comparator.comparingLong(row -> row.row().lease().id()));
          }
          Ahead ahead = lookAhead(results, idle, start.oldest());
          return new Read(
              rows, ahead.found(), start.now(), start.oldest(), ahead.mark(), ahead.newest());
        });
  }

  private static Map<String, Object> sweepValues(ReadRequest request) {
    return Map.of(
        "queue", request.queue(),
        "sweep_buckets", longs(request.sweep(), Range::bucket),
        "sweep_above", longs(request.sweep(), Range::above),
        "sweep_up_to", longs(request.sweep(), Range::upTo),
        "find_limit", (long) request.findLimit());
  }

  private static Map<String, Object> dueValues(ReadRequest request) {
    return Map.of(
        "queue", request.queue(),
        "due_buckets", longs(request.due(), DueRange::bucket),
        "due_at", request.due().stream().map(JdbcBuckets::dueAt).toArray(String[]::new),
        "due_id", longs(request.due(), JdbcBuckets::dueId),
        "due_up_to_id", longs(request.due(), DueRange::upToId),
        "find_limit", (long) request.findLimit());
  }

  private Read find(String operation, Sql sql, ReadRequest request, Map<String, Object> values) {
    return run(
        operation,
        sql,
        values,
        request.timeLimit(),
        (start, results) ->
            new Read(
                rows(results, request.queue(), start.now()),
                null,
                start.now(),
                start.oldest(),
                0,
                0));
  }

  private <T> T run(
      String operation,
      Sql sql,
      Map<String, Object> values,
      @Nullable Duration timeLimit,
      Preamble.Reader<T> reader) {
    return jdbc.run(
        operation, connection -> jdbc.preamble().run(connection, sql, values, timeLimit, reader));
  }

  private static <T> long[] longs(Collection<T> values, ToLongFunction<T> value) {
    return values.stream().mapToLong(value).toArray();
  }

  private static String dueAt(DueRange range) {
    return range.above() == null
        ? "-infinity"
        : range.above().availableAt().atOffset(ZoneOffset.UTC).toString();
  }

  private static long dueId(DueRange range) {
    return range.above() == null ? Long.MIN_VALUE : range.above().id();
  }

  private static List<Row> rows(Results results, String queue, Instant now) throws SQLException {
    List<Row> found = new ArrayList<>();
    Map<String, String> types = new HashMap<>(); // one copy of what repeats
    try (ResultSet rows = results.next().rows()) {
      while (rows.next()) {
        found.add(row(rows, queue, now, types));
      }
    }
    return found;
  }

  private static Row row(ResultSet row, String queue, Instant now, Map<String, String> types)
      throws SQLException {
    long token = row.getLong(4);
    String type = row.getString(5);
    byte[] payload = row.getBytes(8);
    Instant createdAt = ServerTime.read(row, 10);
    Instant firstAttemptAt = ServerTime.readNullable(row, 14);
    OffsetDateTime readyAt = row.getObject(16, OffsetDateTime.class);
    return new Row(
        PARTS[row.getInt(1)],
        row.getInt(2),
        new ClaimedRow(
            new LeaseRef(queue, row.getLong(3), token),
            new StoredMessage(
                type == null ? null : types.computeIfAbsent(type, same -> same),
                row.getString(6),
                row.getString(7),
                payload == null ? NOT_LOADED : Payload.wrap(payload),
                payload == null ? Map.of() : JsonHeaders.of(row.getString(9)),
                createdAt,
                ServerTime.read(row, 11),
                ServerTime.readNullable(row, 18)),
            new History(
                row.getInt(12),
                row.getInt(13),
                firstAttemptAt == null ? Duration.ZERO : ServerTime.between(firstAttemptAt, now),
                ServerTime.between(createdAt, now))),
        row.getBoolean(15),
        readyAt == null ? Duration.ZERO : ServerTime.between(now, readyAt.toInstant()),
        token > 0 || row.getBoolean(17));
  }

  private static boolean isNewMark(Idle idle) {
    Long mark = idle.mark();
    return mark != null && mark == Idle.NEW_MARK;
  }

  /** What was looked up behind a read, if anything was. */
  private record Ahead(@Nullable LookAhead found, long mark, long newest) {
    static final Ahead NOTHING = new Ahead(null, 0, 0);
  }

  private static Ahead lookAhead(Results results, Idle idle, long oldest) throws SQLException {
    if (idle.mode() != Mode.LOOK_AHEAD && idle.mode() != Mode.SLEEP) {
      return Ahead.NOTHING;
    }
    if (idle.mode() == Mode.SLEEP) {
      results.next();
    }
    try (ResultSet ahead = results.next().rows()) {
      ahead.next();
      Instant now = ServerTime.read(ahead, 1);
      Instant due = ServerTime.readNullable(ahead, 3);
      Long mark = idle.mark();
      LookAhead found =
          new LookAhead(
              due == null || !ServerTime.isCommon(due) ? null : ServerTime.between(now, due),
              Watch.MINE,
              ahead.getLong(2),
              mark != null && mark != Idle.NEW_MARK && oldest >= mark);
      return new Ahead(found, found.mark(), ahead.getLong(4));
    }
  }
}
