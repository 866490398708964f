package dev.outbox4j.dlq;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.Payload;
import dev.outbox4j.dlq.DeadLetterPage.Position;
import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.internal.schema.Place;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.JsonHeaders;
import dev.outbox4j.postgres.internal.Preamble;
import dev.outbox4j.postgres.internal.Results;
import dev.outbox4j.postgres.internal.ServerTime;
import dev.outbox4j.postgres.internal.Sql;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The statements on the dead letters of one outbox. Thread-safe. */
final class JdbcWorklist {
  private static final int WINDOWS_OF_A_PAGE = 5;
  private static final Duration LONGEST_SEEK = Duration.ofSeconds(1);

  private final Jdbc jdbc;
  private final String name;
  private final String table;
  private final @Nullable String schema;

  /** Where the letters are, as it is written in a statement. */
  private final String letters;

  JdbcWorklist(PostgresOutbox outbox, DeadLetterQueue deadLetters) {
    this.jdbc =
        new Jdbc(outbox.dataSource(), outbox.table(), PostgresOutbox.DEFAULT_NETWORK_TIMEOUT);
    this.schema = deadLetters.schema().orElse(outbox.table().schema().orElse(null));
    this.table = deadLetters.table();
    this.name = schema == null ? table : schema + "." + table;
    this.letters = place(Place.DEAD_LETTERS);
  }

  private JdbcWorklist(JdbcWorklist all, String partition) {
    this.jdbc = all.jdbc;
    this.schema = all.schema;
    this.table = all.table;
    this.name = all.name;
    this.letters = partition;
  }

  /** The letters of one partition, with the histories and the audit of all. */
  JdbcWorklist ofPartition(String quoted) {
    return new JdbcWorklist(this, quoted);
  }

  String name() {
    return name;
  }

  private String place(Place place) {
    return Names.qualified(schema, Names.ofDeadLetters(place, table));
  }

  private Sql sql(String template) {
    return Preamble.before(
        template
            .replace("{dead_letters}", letters)
            .replace("{trips}", place(Place.DEAD_LETTER_TRIPS))
            .replace("{audit}", place(Place.DEAD_LETTER_AUDIT))
            .replace("{outbox_name}", JdbcDeadLetterWriter.OUTBOX_NAME),
        jdbc.table());
  }

  private interface RowReader<T> {
    T read(ResultSet row) throws SQLException;
  }

  private <T> List<T> rows(
      String what, String template, Map<String, Object> values, RowReader<T> reader) {
    return rows(what, template, values, null, reader);
  }

  private <T> List<T> rows(
      String what,
      String template,
      Map<String, Object> values,
      @Nullable Duration timeLimit,
      RowReader<T> reader) {
    Sql sql = sql(template);
    return jdbc.run(
        what + " " + name,
        connection ->
            jdbc.preamble()
                .run(
                    connection,
                    sql,
                    values,
                    timeLimit,
                    (start, results) -> read(results.next(), reader)));
  }

  private static <T> List<T> read(Results results, RowReader<T> reader) throws SQLException {
    List<T> found = new ArrayList<>();
    try (ResultSet rows = results.rows()) {
      while (rows.next()) {
        found.add(reader.read(rows));
      }
    }
    return found;
  }

  private int update(String what, String template, Map<String, Object> values) {
    Sql sql = sql(template);
    return jdbc.run(
        what + " " + name,
        connection ->
            jdbc.preamble()
                .run(connection, sql, values, null, (start, results) -> results.next().updated()));
  }

  // ---- looking

  private record Line(DeadLetterSummary letter, int seen) {}

  /**
   * A key that has very many letters is asked of the queue's, window by window: each statement
   * would look at all of the key's else.
   */
  private Selected bounded(Selected selected) {
    return selected.isByKey()
            && rows(
                    "look at",
                    selected.named(WorklistSql.ARE_MANY),
                    selected.values(),
                    row -> row.getBoolean(1))
                .get(0)
        ? selected.notByKey()
        : selected;
  }

  DeadLetterPage page(Selected given, int size, Optional<Position> after) {
    Selected selected = bounded(given);
    List<DeadLetterSummary> letters = new ArrayList<>();
    Optional<Position> next = selected.start(after);
    boolean seeks = selected.isOfAnyQueueAndUnresolved();
    for (int window = 0; window < WINDOWS_OF_A_PAGE && letters.size() < size; window++) {
      Map<String, Object> values = new HashMap<>(selected.values());
      values.put("at", next.map(place -> time(place.failedAt())).orElse("infinity"));
      values.put("id", next.map(Position::id).orElse(Long.MAX_VALUE));
      int wanted = size - letters.size();
      values.put("size", (long) wanted);
      List<Line> lines =
          rows("look at", selected.pageByTime(WorklistSql.PAGE), values, JdbcWorklist::line);
      List<DeadLetterSummary> hits =
          lines.stream().filter(line -> line.seen() == 0).map(Line::letter).toList();
      letters.addAll(hits);
      Line last = lines.isEmpty() ? null : lines.get(lines.size() - 1);
      if (hits.size() == wanted) {
        return new DeadLetterPage(letters, Optional.of(position(hits.get(wanted - 1))));
      }
      if (last == null
          || last.seen() < WorklistSql.WINDOW
          || selected.isBehind(last.letter().failedAt())) {
        return new DeadLetterPage(letters, Optional.empty());
      }
      Position end = position(last.letter());
      next = Optional.of(end);
      if (hits.isEmpty() && seeks) {
        try {
          next = beforeLatestOpen(end);
        } catch (OutboxStoreException e) {
          if (e.fault() != Fault.TIMEOUT) {
            throw e;
          }
          seeks = false; // then window by window, however many resolved ones are between
        }
      }
      if (next.isEmpty()) {
        break;
      }
    }
    return new DeadLetterPage(letters, next);
  }

  /**
   * The place before the latest unresolved letter that is behind a place; empty if none is. Letters
   * that were resolved while somebody has an old snapshot are walked one by one.
   */
  private Optional<Position> beforeLatestOpen(Position end) {
    return rows(
            "look at",
            WorklistSql.LATEST_OPEN,
            Map.of("at", time(end.failedAt()), "id", end.id()),
            LONGEST_SEEK,
            row -> new Position(ServerTime.read(row, 1), row.getLong(2) + 1))
        .stream()
        .findFirst();
  }

  private static Position position(DeadLetterSummary letter) {
    return new Position(letter.failedAt(), letter.id());
  }

  private static Line line(ResultSet row) throws SQLException {
    return new Line(summary(row), row.getInt(17));
  }

  private static DeadLetterSummary summary(ResultSet row) throws SQLException {
    Instant resolvedAt = ServerTime.readNullable(row, 13);
    Optional<String> what = Optional.ofNullable(row.getString(15));
    Optional<DeadLetterResolution> resolution =
        resolvedAt == null
            ? Optional.empty()
            : Optional.of(
                new DeadLetterResolution(
                    resolvedAt,
                    Optional.ofNullable(row.getString(14)).orElse(""),
                    what.orElse("")));
    return new DeadLetterSummary(
        row.getLong(1),
        row.getLong(2),
        row.getString(3),
        Optional.ofNullable(row.getString(4)),
        Optional.ofNullable(row.getString(5)),
        row.getLong(6),
        row.getInt(7),
        row.getInt(8),
        ServerTime.read(row, 9),
        row.getString(10),
        Optional.ofNullable(row.getString(11)),
        row.getInt(12),
        resolution,
        resolution.isPresent()
            ? Optional.empty()
            : what.filter(text -> text.startsWith(Words.NOT_REDRIVEN)));
  }

  /** What the driver makes of infinite times has no text that the server reads. */
  private static String time(Instant instant) {
    return instant.isAfter(DeadLetterFilter.LAST)
        ? "infinity"
        : instant.isBefore(DeadLetterFilter.FIRST) ? "-infinity" : instant.toString();
  }

  long count(Selected given, long most) {
    Selected selected = bounded(given);
    Map<String, Object> values = new HashMap<>(selected.values());
    values.put("most", most);
    return rows("count", selected.countByTime(WorklistSql.COUNT), values, row -> row.getLong(1))
        .get(0);
  }

  List<DeadLetter> letters(long[] ids) {
    return rows("look at", WorklistSql.LETTERS, Map.of("ids", ids), JdbcWorklist::letter);
  }

  private static DeadLetter letter(ResultSet row) throws SQLException {
    return new DeadLetter(
        summary(row),
        Payload.wrap(row.getBytes(18)),
        JsonHeaders.of(row.getString(19)),
        Optional.ofNullable(row.getString(20)),
        ServerTime.read(row, 21),
        ServerTime.read(row, 22),
        Optional.ofNullable(ServerTime.readNullable(row, 23)),
        Optional.ofNullable(ServerTime.readNullable(row, 24)),
        Optional.ofNullable(row.getString(25)));
  }

  List<DeadLetterKey> keys(String queue, int size, String after) {
    return rows(
        "look at",
        WorklistSql.KEYS,
        Map.of("queue", queue, "size", (long) size, "after", after),
        row ->
            new DeadLetterKey(
                row.getString(1), row.getLong(2), ServerTime.read(row, 3), row.getLong(4)));
  }

  List<DeadLetterTrip> trips(long id) {
    return rows("look at the redrives of", WorklistSql.TRIPS, Map.of("id", id), JdbcWorklist::trip);
  }

  private static DeadLetterTrip trip(ResultSet row) throws SQLException {
    Optional<DeadLetterTrip.Original> original =
        row.getBoolean(10)
            ? Optional.of(
                new DeadLetterTrip.Original(
                    Optional.ofNullable(row.getString(11)),
                    Payload.wrap(row.getBytes(12)),
                    JsonHeaders.of(row.getString(13))))
            : Optional.empty();
    return new DeadLetterTrip(
        row.getInt(1),
        ServerTime.read(row, 2),
        row.getString(3),
        Optional.ofNullable(row.getString(4)),
        new DeadLetterTrip.Failure(
            ServerTime.read(row, 5),
            row.getString(6),
            Optional.ofNullable(row.getString(7)),
            row.getInt(8),
            row.getInt(9)),
        original,
        DeadLetterTrip.Outcome.valueOf(row.getString(14)));
  }

  List<DeadLetterAction> audit(int limit) {
    return rows(
        "look at the audit of",
        WorklistSql.AUDIT,
        Map.of("limit", (long) limit),
        row ->
            new DeadLetterAction(
                row.getLong(1),
                row.getString(2),
                row.getString(3),
                Optional.ofNullable(row.getString(4)),
                row.getString(5),
                ServerTime.read(row, 6),
                Optional.ofNullable(ServerTime.readNullable(row, 7)),
                row.getString(8),
                row.getLong(9),
                row.getLong(10),
                row.getLong(11),
                Optional.ofNullable(row.getString(12))));
  }

  // ---- acting

  /**
   * An action that is in the audit.
   *
   * @param id of its entry
   * @param begun when it began: what fails later is none of its letters
   */
  record Run(long id, Instant begun) {}

  Run begin(String action, String by, String note, String filter) {
    return rows(
            "write to the audit of",
            WorklistSql.BEGIN,
            Map.of("action", action, "by", by, "note", note, "filter", filter),
            row -> new Run(row.getLong(1), ServerTime.read(row, 2)))
        .get(0);
  }

  /**
   * Begins a retention; empty if one runs, or one has ended within a pause.
   *
   * @param pause how long one is enough for; zero if it is not to count
   */
  Optional<Run> beginRetention(String by, String filter, Duration pause) {
    Sql sql = sql(WorklistSql.BEGIN_RETENTION);
    Map<String, Object> values =
        Map.of("by", by, "filter", filter, "pause", ServerTime.seconds(pause));
    return jdbc.run(
        "write to the audit of " + name,
        connection ->
            jdbc.preamble()
                .run(
                    connection,
                    sql,
                    values,
                    null,
                    (start, results) -> {
                      read(results.next(), row -> row.getString(1));
                      return read(
                              results.next(),
                              row -> new Run(row.getLong(1), ServerTime.read(row, 2)))
                          .stream()
                          .findFirst();
                    }));
  }

  /** Writes that a run is alive, and will be for a time. */
  void seen(Run run, Duration ahead) {
    update(
        "write to the audit of",
        WorklistSql.SEEN,
        Map.of("run", run.id(), "ahead", ServerTime.seconds(ahead)));
  }

  /** Writes how a run ended, and settles how many letters were done. */
  void end(Run run, String status, String error, Tally tally) {
    rows(
            "write to the audit of",
            WorklistSql.END,
            Map.of(
                "run", run.id(),
                "status", status,
                "error", error,
                "refused", tally.refused(),
                "passed_by", tally.passedBy()),
            row -> row.getLong(1))
        .forEach(tally::settle);
  }

  /**
   * A letter that an action may be done to.
   *
   * @param id its id
   * @param messageId that of its message
   * @param queue its queue
   * @param orderingKey its ordering key, or null
   * @param timerId its timer id, or null
   * @param failedAt when it failed: it is the same letter no more once it has failed again
   * @param bytes what it takes in memory, about
   * @param meant false of the letter where the look ended, if the filter does not name it
   */
  record Candidate(
      long id,
      long messageId,
      String queue,
      @Nullable String orderingKey,
      @Nullable String timerId,
      Instant failedAt,
      long bytes,
      boolean meant) {

    static Candidate of(DeadLetter letter) {
      DeadLetterSummary summary = letter.summary();
      return new Candidate(
          summary.id(),
          summary.messageId(),
          summary.queue(),
          summary.orderingKey().orElse(null),
          letter.timerId().orElse(null),
          summary.failedAt(),
          summary.payloadBytes(),
          true);
    }

    /** Tells whether it goes first, of two letters of a key. */
    boolean isOlderThan(Candidate other) {
      return messageId < other.messageId || (messageId == other.messageId && id < other.id);
    }

    /** Tells whether nobody has done anything about it since. */
    boolean isStill(DeadLetter letter) {
      return letter.summary().resolution().isEmpty()
          && letter.summary().failedAt().equals(failedAt);
    }
  }

  static long[] ids(List<Candidate> letters) {
    return letters.stream().mapToLong(Candidate::id).toArray();
  }

  List<Candidate> candidates(
      Selected given, boolean open, Optional<Instant> begun, @Nullable Candidate after) {
    Selected selected = bounded(given);
    Map<String, Object> values = new HashMap<>(selected.values());
    values.put("begun", begun.map(Instant::toString).orElse("infinity"));
    // no queue has an empty name
    values.put("queue", after == null ? selected.queue().orElse("") : after.queue());
    values.put("message", after == null ? Long.MIN_VALUE : after.messageId());
    values.put("id", after == null ? Long.MIN_VALUE : after.id());
    return rows(
        "look at",
        open ? selected.openOnes(WorklistSql.CANDIDATES) : selected.allOnes(WorklistSql.CANDIDATES),
        values,
        row ->
            new Candidate(
                row.getLong(1),
                row.getLong(2),
                row.getString(3),
                row.getString(4),
                row.getString(5),
                ServerTime.read(row, 6),
                row.getLong(7),
                row.getBoolean(8)));
  }

  /** One of some ids that no letter of the outbox has. */
  Optional<Long> unknown(long[] ids) {
    return rows("look at", WorklistSql.UNKNOWN, Map.of("ids", ids), row -> row.getLong(1)).stream()
        .findFirst();
  }

  /** What is against putting letters back, of those of which something is. */
  Map<Long, String> obstacles(long[] ids) {
    Map<Long, String> found = new LinkedHashMap<>();
    rows(
            "look at",
            WorklistSql.OBSTACLES,
            Map.of("ids", ids),
            row -> Map.entry(row.getLong(1), row.getString(2)))
        .forEach(each -> found.put(each.getKey(), each.getValue()));
    return found;
  }

  /**
   * What became of a letter.
   *
   * @param done whether it was done
   * @param words why not, or null
   */
  record Written(boolean done, @Nullable String words) {}

  /**
   * Puts letters back; returns what became of those that were as they had been. Empty if another
   * run has the turn.
   */
  Optional<Map<Long, Written>> redrive(
      Run run, List<Candidate> letters, Redrive redrive, Tally tally) {
    return inTurn(WorklistSql.REDRIVE, redriving(run, letters, Words.REDRIVEN, redrive, tally));
  }

  Optional<Map<Long, Written>> redriveEdited(
      Run run, DeadLetter letter, DeadLetterEdit edit, Redrive redrive, Tally tally) {
    Map<String, Object> values =
        redriving(run, List.of(Candidate.of(letter)), Words.EDITED, redrive, tally);
    values.put("types", new String[] {edit.typeOf(letter)});
    values.put("payload", edit.payloadOf(letter).bytes());
    Map<String, String> headers = edit.newHeaders();
    values.put("removed", edit.removedHeaders().toArray(String[]::new));
    values.put("names", headers.keySet().toArray(String[]::new));
    values.put("values", headers.values().toArray(String[]::new));
    return inTurn(WorklistSql.EDIT, values);
  }

  private Map<String, Object> redriving(
      Run run, List<Candidate> letters, String what, Redrive redrive, Tally tally) {
    Map<String, Object> values = acting(run, letters);
    values.put("by", redrive.who());
    values.put("what", what);
    values.put("note", redrive.note().orElse(""));
    values.put("refused", tally.refused());
    values.put("passed_by", tally.passedBy());
    values.put("keyed", letters.stream().anyMatch(each -> each.orderingKey() != null));
    values.put("channel", jdbc.table().channel());
    return values;
  }

  Map<Long, Written> discard(Run run, List<Candidate> letters, String by, String what) {
    Map<String, Object> values = acting(run, letters);
    values.put("by", by);
    values.put("what", what);
    return written(rows("discard from", WorklistSql.DISCARD, values, JdbcWorklist::writtenOne));
  }

  Map<Long, Written> purge(Run run, List<Candidate> letters, boolean forced) {
    Map<String, Object> values = acting(run, letters);
    values.put("forced", forced);
    return written(rows("purge from", WorklistSql.PURGE, values, JdbcWorklist::writtenOne));
  }

  void note(List<Candidate> letters, Map<Candidate, String> notes, String by) {
    Map<String, Object> values = named(letters);
    values.put("notes", letters.stream().map(notes::get).toArray(String[]::new));
    values.put("by", by);
    update("note in", WorklistSql.NOTE, values);
  }

  private static Map<String, Object> acting(Run run, List<Candidate> letters) {
    Map<String, Object> values = named(letters);
    values.put("run", run.id());
    return values;
  }

  private static Map<String, Object> named(List<Candidate> letters) {
    Map<String, Object> values = new HashMap<>();
    values.put("ids", ids(letters));
    values.put(
        "failed", letters.stream().map(each -> time(each.failedAt())).toArray(String[]::new));
    return values;
  }

  private Optional<Map<Long, Written>> inTurn(String template, Map<String, Object> values) {
    Sql sql = sql(template);
    return jdbc.run(
        "redrive from " + name,
        connection ->
            jdbc.preamble()
                .run(
                    connection,
                    sql,
                    values,
                    null,
                    (start, results) -> {
                      boolean turn = read(results.next(), row -> row.getBoolean(1)).get(0);
                      Map<Long, Written> written =
                          written(read(results.next(), JdbcWorklist::writtenOne));
                      return turn ? Optional.of(written) : Optional.empty();
                    }));
  }

  private static Map.Entry<Long, Written> writtenOne(ResultSet row) throws SQLException {
    return Map.entry(row.getLong(1), new Written(row.getBoolean(2), row.getString(3)));
  }

  private static Map<Long, Written> written(List<Map.Entry<Long, Written>> each) {
    Map<Long, Written> written = new LinkedHashMap<>();
    each.forEach(one -> written.put(one.getKey(), one.getValue()));
    return written;
  }
}
