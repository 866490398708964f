package dev.outbox4j.job;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import dev.outbox4j.dlq.DeadLetter;
import dev.outbox4j.dlq.DeadLetterSummary;
import dev.outbox4j.internal.state.Settlement;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.ServerTime;
import dev.outbox4j.postgres.internal.SqlFaults;
import dev.outbox4j.triggers.internal.Statements;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The record of the jobs of a queue. Thread-safe. */
final class JobStore {
  private final Jdbc jdbc;
  private final Statements statements;
  private final String queue;
  private final Duration inFlight;
  private final Duration completed;

  JobStore(
      PostgresOutbox outbox,
      String queue,
      Duration inFlight,
      Duration completed,
      Duration networkTimeout) {
    this.jdbc = new Jdbc(outbox.dataSource(), outbox.table(), networkTimeout);
    this.statements = new Statements(outbox.table(), queue);
    this.queue = queue;
    this.inFlight = inFlight;
    this.completed = completed;
  }

  /** In the caller's transaction. */
  EnqueueResult enqueue(
      Connection connection, String jobId, Payload payload, OutboxMessage message) {
    try {
      return statements
          .query(
              connection,
              JobSql.ENQUEUE,
              values(jobId, payload, message),
              row -> result(jobId, row))
          .get(0);
    } catch (SQLException e) {
      throw SqlFaults.explain("enqueue", jdbc.table(), e);
    }
  }

  /** In a transaction of its own. */
  EnqueueResult enqueue(String jobId, Payload payload, OutboxMessage message) {
    return jdbc.run(
        "enqueue",
        connection ->
            statements.executeAlone(
                jdbc,
                connection,
                JobSql.ENQUEUE_ALONE,
                values(jobId, payload, message),
                results -> {
                  results.next(); // of the setting
                  try (ResultSet rows = results.next().rows()) {
                    return Statements.read(rows, row -> result(jobId, row)).get(0);
                  }
                }));
  }

  private Map<String, Object> values(String jobId, Payload payload, OutboxMessage message) {
    Map<String, Object> values = new HashMap<>();
    values.put("queue", queue);
    values.put("job_id", jobId);
    values.put("type", message.type().orElseThrow());
    values.put("payload", payload.bytes());
    values.put(
        "headers",
        Stream.concat(
                message.headers().entrySet().stream()
                    .flatMap(header -> Stream.of(header.getKey(), header.getValue())),
                Stream.of(Job.ID_HEADER, jobId))
            .toArray(String[]::new));
    values.put("delay_micros", micros(message.deliverIn().orElse(Duration.ZERO)));
    values.put("in_flight_micros", micros(inFlight));
    values.put("completed_micros", micros(completed));
    return values;
  }

  /** Rounded up, so that nothing is over early. */
  private static long micros(Duration time) {
    return Math.addExact(
        Math.multiplyExact(time.getSeconds(), 1_000_000L), (time.getNano() + 999L) / 1_000);
  }

  private static EnqueueResult result(String jobId, ResultSet row) throws SQLException {
    return new EnqueueResult(
        jobId,
        EnqueueResult.Decision.valueOf(row.getString(1).toUpperCase(Locale.ROOT)),
        row.getLong(2),
        ServerTime.read(row, 3));
  }

  List<JobStatus> statuses(List<String> jobIds) {
    return jdbc.run(
        "status of jobs",
        connection ->
            statements.queryAlone(
                jdbc,
                connection,
                JobSql.STATUS,
                Map.of("queue", queue, "ids", jobIds.toArray(String[]::new)),
                JobStore::status));
  }

  private static JobStatus status(ResultSet row) throws SQLException {
    boolean live = row.getBoolean(6);
    String ended = live ? null : row.getString(11);
    JobState state = live ? live(row.getBoolean(7)) : end(ended);
    return new JobStatus(
        row.getString(1),
        row.getString(2),
        state,
        row.getLong(3),
        ServerTime.read(row, 4),
        live ? ServerTime.read(row, 8) : ServerTime.read(row, 5),
        row.getInt(9),
        row.getInt(10),
        ended == null ? Optional.empty() : Optional.of(ServerTime.read(row, 13)),
        ended == null ? Optional.empty() : Optional.ofNullable(row.getString(12)));
  }

  private static JobState live(boolean leased) {
    return leased ? JobState.IN_FLIGHT : JobState.QUEUED;
  }

  private static JobState end(@Nullable String status) {
    if (status == null) {
      return JobState.GONE;
    }
    return switch (status) {
      case "completed" -> JobState.COMPLETED;
      case "failed" -> JobState.FAILED;
      case "dead_lettered" -> JobState.DEAD_LETTERED;
      default -> JobState.GONE; // of a newer version: the other jobs that were asked for are told
    };
  }

  JobSample sample() {
    return jdbc.run(
        "sample of jobs",
        connection ->
            statements
                .queryAlone(
                    jdbc, connection, JobSql.SAMPLE, Map.of("queue", queue), JobStore::sample)
                .get(0));
  }

  private static JobSample sample(ResultSet row) throws SQLException {
    double oldest = row.getDouble(6);
    Optional<Duration> age =
        row.wasNull()
            ? Optional.empty()
            : Optional.of(Duration.ofMillis(Math.round(oldest * 1_000)));
    return new JobSample(
        ServerTime.read(row, 1),
        new JobSample.Outcomes(row.getLong(2), row.getLong(3)),
        new JobSample.Outcomes(row.getLong(4), row.getLong(5)),
        age,
        instant(row, 7),
        instant(row, 8));
  }

  private static Optional<Instant> instant(ResultSet row, int column) throws SQLException {
    return Optional.ofNullable(ServerTime.readNullable(row, column));
  }

  /** Puts the job of a dead letter on record, unless it is. */
  void record(String jobId, DeadLetter letter) {
    DeadLetterSummary summary = letter.summary();
    Map<String, Object> values = new HashMap<>();
    values.put("queue", queue);
    values.put("job_id", jobId);
    values.put("type", summary.type().orElseThrow());
    values.put("message_id", summary.messageId());
    values.put("enqueued_at", letter.createdAt().toString());
    values.put("reason", summary.reason());
    values.put("attempts", (long) summary.attempts());
    values.put("deliveries", (long) summary.deliveries());
    values.put("ended_at", summary.failedAt().toString());
    jdbc.run(
        "put a job on record",
        connection -> statements.updateAlone(jdbc, connection, JobSql.RECORD, values));
  }

  /**
   * For how long a message has only been left by who had it; empty if it was not, or is gone.
   *
   * @param deliveriesBefore its deliveries without the one at hand
   */
  Optional<Duration> leftFor(long messageId, int deliveriesBefore) {
    return jdbc
        .run(
            "look at a job",
            connection ->
                statements.queryAlone(
                    jdbc,
                    connection,
                    JobSql.LEFT_FOR,
                    Map.of(
                        "queue",
                        queue,
                        "message_id",
                        messageId,
                        "left_at",
                        Settlement.Leave.AT_DELIVERY + deliveriesBefore),
                    row -> Duration.ofMillis(Math.round(row.getDouble(1) * 1_000))))
        .stream()
        .findFirst();
  }

  /** Returns the types of which a handler has ended a job a short time ago. */
  List<String> handledLately() {
    return jdbc.run(
        "look at jobs",
        connection ->
            statements.queryAlone(
                jdbc,
                connection,
                JobSql.HANDLED_LATELY,
                Map.of("queue", queue),
                row -> row.getString(1)));
  }

  /** Deletes what ended so long ago; returns how many, of each kind at most that many. */
  int purge(Duration keep, int most) {
    return jdbc.run(
        "purge jobs",
        connection ->
            statements
                .queryAlone(
                    jdbc,
                    connection,
                    JobSql.PURGE,
                    Map.of(
                        "queue", queue, "seconds", ServerTime.seconds(keep), "most", (long) most),
                    row -> row.getInt(1))
                .get(0));
  }
}
