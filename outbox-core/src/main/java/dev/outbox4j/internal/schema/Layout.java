package dev.outbox4j.internal.schema;

import static dev.outbox4j.internal.schema.Column.Use.CANCELLER_READS;
import static dev.outbox4j.internal.schema.Column.Use.DEDUP_INSERTS;
import static dev.outbox4j.internal.schema.Column.Use.DEDUP_UPDATES;
import static dev.outbox4j.internal.schema.Column.Use.JOB_READS;
import static dev.outbox4j.internal.schema.Column.Use.OFTEN_WRITTEN;
import static dev.outbox4j.internal.schema.Column.Use.OPERATOR_INSERTS;
import static dev.outbox4j.internal.schema.Column.Use.OPERATOR_UPDATES;
import static dev.outbox4j.internal.schema.Column.Use.PUBLISHER_INSERTS;
import static dev.outbox4j.internal.schema.Column.Use.PUBLISHER_READS;
import static dev.outbox4j.internal.schema.Column.Use.REPLACER_READS;
import static dev.outbox4j.internal.schema.Column.Use.REPLACER_UPDATES;
import static dev.outbox4j.internal.schema.Column.Use.SLOT_UPDATES;
import static dev.outbox4j.internal.schema.Column.Use.SUBSCRIBER_INSERTS;
import static dev.outbox4j.internal.schema.Column.Use.SUBSCRIBER_READS;
import static dev.outbox4j.internal.schema.Column.Use.SUBSCRIBER_UPDATES;

import java.util.List;

/**
 * One table: its columns, indexes and storage settings. Grants and the validator are derived from
 * it; that the migrations create the same is tested.
 *
 * @param purpose what the table is, in words
 * @param version the schema's version, which the comment on the table holds
 * @param columns the columns, in order
 * @param indexes the indexes
 * @param oftenBecause why no index may mention the columns that are written often
 * @param logged whether the table must survive a crash
 * @param settings the storage settings
 */
public record Layout(
    String purpose,
    int version,
    List<Column> columns,
    List<Index> indexes,
    String oftenBecause,
    boolean logged,
    List<Setting> settings) {

  private static final String TIMESTAMP = "timestamp with time zone";
  private static final String[] NOW = {"now()", "CURRENT_TIMESTAMP", "transaction_timestamp()"};

  private static final Layout OUTBOX =
      new Layout(
          "outbox table",
          1,
          List.of(
              Column.required("id", "bigint")
                  .defaulting(Column.IDENTITY)
                  .used(
                      PUBLISHER_READS,
                      CANCELLER_READS,
                      REPLACER_READS,
                      OPERATOR_INSERTS,
                      DEDUP_INSERTS)
                  .used(REPLACER_UPDATES, SUBSCRIBER_UPDATES, JOB_READS),
              Column.required("queue", "text")
                  .inByteOrder()
                  .used(PUBLISHER_INSERTS, PUBLISHER_READS, CANCELLER_READS, OPERATOR_INSERTS)
                  .used(JOB_READS),
              replaced(Column.optional("type", "text").inByteOrder()),
              replaced(Column.optional("ordering_key", "text").inByteOrder()),
              replaced(Column.required("payload", "bytea")),
              replaced(Column.required("headers", "jsonb").defaulting("'{}'::jsonb")),
              Column.required("created_at", TIMESTAMP)
                  .defaulting(NOW)
                  .used(REPLACER_UPDATES, JOB_READS),
              Column.required("available_at", TIMESTAMP)
                  .defaulting("clock_timestamp()")
                  .used(PUBLISHER_INSERTS, PUBLISHER_READS, OPERATOR_INSERTS, SUBSCRIBER_UPDATES)
                  .used(REPLACER_READS, REPLACER_UPDATES, JOB_READS),
              Column.optional("lease_until", TIMESTAMP)
                  .used(CANCELLER_READS, SUBSCRIBER_UPDATES, OFTEN_WRITTEN)
                  .used(REPLACER_READS, REPLACER_UPDATES, JOB_READS),
              claimed(Column.optional("leased_at", TIMESTAMP)).used(REPLACER_READS),
              Column.required("lease_token", "bigint")
                  .defaulting("0")
                  .used(OPERATOR_INSERTS, SUBSCRIBER_UPDATES, OFTEN_WRITTEN)
                  .used(REPLACER_READS, REPLACER_UPDATES),
              claimed(Column.required("deliveries_count", "integer").defaulting("0"))
                  .used(JOB_READS),
              attempt(Column.required("attempts_count", "integer").defaulting("0")).used(JOB_READS),
              attempt(Column.optional("first_attempt_at", TIMESTAMP)),
              attempt(Column.optional("last_attempt_at", TIMESTAMP)),
              claimed(Column.optional("leased_by", "text")).used(REPLACER_READS),
              attempt(Column.optional("last_error", "text")),
              Column.optional("timer_id", "text")
                  .inByteOrder()
                  .used(PUBLISHER_INSERTS, PUBLISHER_READS, CANCELLER_READS, OPERATOR_INSERTS),
              Column.optional("expires_at", TIMESTAMP)
                  .used(PUBLISHER_INSERTS, REPLACER_UPDATES, REPLACER_READS),
              Column.optional("next_id", "bigint")
                  .used(REPLACER_READS, REPLACER_UPDATES, SUBSCRIBER_UPDATES)),
          List.of(
              Index.primaryKey("id"),
              Index.plain("queue", "available_at", "id").where("(available_at IS NOT NULL)"),
              Index.plain("queue", "timer_id").uniqueWhere("(timer_id IS NOT NULL)")),
          "every claim writes it",
          true,
          List.of(
              new Setting("fillfactor", "42"),
              new Setting("autovacuum_vacuum_scale_factor", "0"),
              new Setting("autovacuum_vacuum_threshold", "1000"),
              new Setting("autovacuum_vacuum_insert_scale_factor", "0"),
              new Setting("autovacuum_vacuum_insert_threshold", "100000"),
              new Setting("autovacuum_vacuum_cost_delay", "0"),
              new Setting("vacuum_truncate", "off")));

  private static final Layout SLEEPERS =
      new Layout(
          "table of sleeping subscribers",
          1,
          List.of(
              Column.required("queue", "text")
                  .inByteOrder()
                  .used(PUBLISHER_READS, OPERATOR_INSERTS),
              Column.required("subscriber", "text").inByteOrder().used(OPERATOR_INSERTS),
              Column.required("wake_at", TIMESTAMP)
                  .used(PUBLISHER_READS, SUBSCRIBER_UPDATES, OFTEN_WRITTEN, OPERATOR_INSERTS),
              Column.required("on_watch", "boolean")
                  .defaulting("false")
                  .used(SUBSCRIBER_UPDATES, OFTEN_WRITTEN),
              Column.required("until", TIMESTAMP)
                  .used(SUBSCRIBER_UPDATES, OFTEN_WRITTEN, OPERATOR_INSERTS, OPERATOR_UPDATES)),
          List.of(Index.primaryKey("queue", "subscriber")),
          "a subscriber writes it whenever it falls asleep",
          false,
          List.of(
              new Setting("fillfactor", "50"),
              new Setting("autovacuum_vacuum_scale_factor", "0"),
              new Setting("autovacuum_vacuum_threshold", "1000")));

  private static final Layout DEAD_LETTERS =
      new Layout(
          "dead-letter table",
          1,
          List.of(
              heldBy(Column.required("id", "bigint").defaulting(Column.IDENTITY)),
              heldBy(moved(Column.required("outbox", "text").inByteOrder())),
              heldBy(moved(Column.required("original_id", "bigint"))),
              movedAgain(Column.required("lease_token", "bigint")),
              heldBy(moved(Column.required("queue", "text").inByteOrder())),
              movedAgain(Column.optional("type", "text").inByteOrder()),
              heldBy(moved(Column.optional("ordering_key", "text").inByteOrder())),
              movedAgain(Column.required("payload", "bytea")),
              movedAgain(Column.required("headers", "jsonb").defaulting("'{}'::jsonb")),
              movedAgain(Column.required("deliveries_count", "integer")),
              movedAgain(Column.required("attempts_count", "integer")),
              moved(Column.required("created_at", TIMESTAMP)),
              moved(Column.required("available_at", TIMESTAMP)),
              movedAgain(Column.optional("first_attempt_at", TIMESTAMP)),
              movedAgain(Column.optional("last_attempt_at", TIMESTAMP)),
              Column.required("failed_at", TIMESTAMP).defaulting(NOW).used(SUBSCRIBER_UPDATES),
              movedAgain(Column.required("failure_reason", "text")),
              movedAgain(Column.optional("last_exception", "text")),
              moved(Column.optional("timer_id", "text").inByteOrder()),
              heldBy(Column.optional("resolved_at", TIMESTAMP).used(OPERATOR_UPDATES))
                  .used(SUBSCRIBER_UPDATES),
              Column.optional("resolved_by", "text").used(OPERATOR_UPDATES),
              Column.optional("resolution", "text").used(OPERATOR_UPDATES),
              heldBy(Column.required("redrives_count", "integer").defaulting("0"))
                  .used(OPERATOR_UPDATES)),
          List.of(
              Index.primaryKey("id", "failed_at"),
              Index.plain("outbox", "queue", "failed_at", "id").where("(resolved_at IS NULL)"),
              Index.plain("outbox", "failed_at", "id"),
              Index.plain("original_id", "outbox", "id"),
              Index.plain("outbox", "queue", "original_id", "id").where("(resolved_at IS NULL)"),
              Index.plain("queue", "ordering_key")
                  .where("((resolved_at IS NULL) AND (ordering_key IS NOT NULL))")),
          "",
          true,
          List.of());

  private static final Layout DEAD_LETTER_TRIPS =
      new Layout(
          "table of the redrives of dead letters",
          1,
          List.of(
              Column.required("dead_letter", "bigint"),
              Column.required("number", "integer"),
              Column.required("redriven_at", TIMESTAMP).defaulting("clock_timestamp()"),
              Column.required("redriven_by", "text"),
              Column.optional("note", "text"),
              Column.required("failed_at", TIMESTAMP),
              Column.required("failure_reason", "text"),
              Column.optional("last_exception", "text"),
              Column.required("deliveries_count", "integer"),
              Column.required("attempts_count", "integer"),
              Column.required("edited", "boolean").defaulting("false"),
              Column.optional("type", "text").inByteOrder(),
              Column.optional("payload", "bytea"),
              Column.optional("headers", "jsonb"),
              Column.required("created_at", TIMESTAMP)),
          List.of(Index.primaryKey("dead_letter", "redriven_at")),
          "",
          true,
          List.of());

  private static final Layout DEAD_LETTER_AUDIT =
      new Layout(
          "audit table of dead letters",
          1,
          List.of(
              Column.required("id", "bigint").defaulting(Column.IDENTITY),
              Column.required("outbox", "text").inByteOrder(),
              Column.required("action", "text"),
              Column.required("acted_by", "text"),
              Column.optional("note", "text"),
              Column.required("filter", "text"),
              Column.required("began_at", TIMESTAMP).defaulting("clock_timestamp()"),
              Column.required("seen_at", TIMESTAMP).defaulting("clock_timestamp()"),
              Column.optional("ended_at", TIMESTAMP),
              Column.required("status", "text").defaulting("'running'::text"),
              Column.required("done_count", "bigint").defaulting("0"),
              Column.required("refused_count", "bigint").defaulting("0"),
              Column.required("passed_by_count", "bigint").defaulting("0"),
              Column.optional("error", "text")),
          List.of(
              Index.primaryKey("id"),
              Index.plain("status", "id")
                  .where("(action = ANY (ARRAY['retention'::text, 'drop partition'::text]))")),
          "",
          true,
          List.of());

  private static final List<Setting> OF_BUCKETS =
      List.of(
          new Setting("fillfactor", "50"),
          new Setting("autovacuum_vacuum_scale_factor", "0"),
          new Setting("autovacuum_vacuum_threshold", "1000"));

  private static final Layout BUCKETS =
      new Layout(
          "table of the buckets of ordered queues",
          1,
          List.of(
              Column.required("queue", "text").inByteOrder(),
              Column.required("bucket", "bigint"),
              Column.optional("owner", "text").inByteOrder().used(OFTEN_WRITTEN),
              Column.required("epoch", "bigint").defaulting("0").used(OFTEN_WRITTEN),
              Column.required("counted_up_to", "bigint").defaulting("0").used(OFTEN_WRITTEN),
              Column.required("seen_up_to", "bigint").defaulting("0").used(OFTEN_WRITTEN)),
          List.of(Index.primaryKey("queue", "bucket")),
          "whoever takes a bucket or gives it up writes it",
          true,
          OF_BUCKETS);

  private static final Layout BUCKET_OWNERS =
      new Layout(
          "table of the owners of buckets",
          1,
          List.of(
              Column.required("queue", "text").inByteOrder(),
              Column.required("owner", "text").inByteOrder(),
              Column.required("lease_until", TIMESTAMP).used(OFTEN_WRITTEN),
              Column.required("read_up_to", "bigint").defaulting("0").used(OFTEN_WRITTEN),
              Column.required("seen_up_to", "bigint").defaulting("0").used(OFTEN_WRITTEN)),
          List.of(Index.primaryKey("queue", "owner")),
          "each owner writes it once a second",
          true,
          OF_BUCKETS);

  private static final Layout PAUSES =
      new Layout(
          "table of the pauses of queues",
          1,
          List.of(
              Column.required("id", "bigint").defaulting(Column.IDENTITY),
              Column.required("queue", "text").inByteOrder().used(OPERATOR_INSERTS),
              Column.required("paused_at", TIMESTAMP).defaulting(NOW),
              Column.required("paused_by", "text")
                  .defaulting("SESSION_USER", "\"session_user\"()")
                  .used(OPERATOR_INSERTS),
              Column.optional("reason", "text").used(OPERATOR_INSERTS),
              Column.optional("resumed_at", TIMESTAMP).used(OPERATOR_UPDATES),
              Column.optional("resumed_by", "text").used(OPERATOR_UPDATES)),
          List.of(Index.primaryKey("id"), Index.plain("queue").uniqueWhere("(resumed_at IS NULL)")),
          "",
          true,
          List.of());

  private static final Layout DEDUP =
      new Layout(
          "table of dedup keys",
          1,
          List.of(
              Column.required("queue", "text").inByteOrder(),
              Column.required("dedup_key", "text").inByteOrder(),
              Column.required("message_id", "bigint"),
              Column.required("published_at", TIMESTAMP),
              // locking a row takes the right to update a column
              Column.required("kept_until", TIMESTAMP).used(DEDUP_UPDATES)),
          List.of(Index.primaryKey("queue", "dedup_key"), Index.plain("kept_until")),
          "",
          true,
          List.of(
              new Setting("autovacuum_vacuum_scale_factor", "0"),
              new Setting("autovacuum_vacuum_threshold", "1000")));

  private static final Layout SLOTS =
      new Layout(
          "table of slots",
          1,
          List.of(
              Column.required("queue", "text").inByteOrder(),
              Column.required("slot", "integer"),
              Column.required("message_id", "bigint")
                  .defaulting("0")
                  .used(OFTEN_WRITTEN, SLOT_UPDATES),
              Column.required("lease_token", "bigint")
                  .defaulting("0")
                  .used(OFTEN_WRITTEN, SLOT_UPDATES)),
          List.of(Index.primaryKey("queue", "slot")),
          "",
          true,
          List.of(
              new Setting("fillfactor", "50"),
              new Setting("autovacuum_vacuum_scale_factor", "0"),
              new Setting("autovacuum_vacuum_threshold", "1000")));

  private static final Layout TIMERS =
      new Layout(
          "table of timers",
          1,
          List.of(
              Column.required("application", "text").inByteOrder(),
              Column.required("name", "text").inByteOrder(),
              Column.required("schedule", "text"),
              Column.required("registered_at", TIMESTAMP).defaulting(NOW),
              Column.required("decided_up_to", TIMESTAMP),
              Column.optional("due_at", TIMESTAMP),
              Column.optional("missed_first", TIMESTAMP),
              Column.optional("missed_latest", TIMESTAMP),
              Column.required("missed_count", "bigint").defaulting("0"),
              Column.required("not_run_count", "bigint").defaulting("0"),
              Column.optional("runs_limit", "bigint"),
              Column.required("runs_left", "bigint").defaulting("0"),
              Column.optional("deployment", "text"),
              Column.optional("startup_at", TIMESTAMP),
              Column.optional("paused_at", TIMESTAMP),
              Column.optional("paused_by", "text"),
              Column.optional("pause_reason", "text"),
              Column.required("counts_from", TIMESTAMP).defaulting(NOW)),
          List.of(
              Index.primaryKey("application", "name"),
              Index.plain("application", "due_at").where("(due_at IS NOT NULL)")),
          "",
          true,
          List.of(
              new Setting("fillfactor", "50"),
              new Setting("autovacuum_vacuum_scale_factor", "0"),
              new Setting("autovacuum_vacuum_threshold", "1000")));

  private static final Layout TIMER_RUNS =
      new Layout(
          "table of the runs of timers",
          1,
          List.of(
              Column.required("id", "bigint").defaulting(Column.IDENTITY),
              Column.required("application", "text").inByteOrder(),
              Column.required("name", "text").inByteOrder(),
              Column.required("instant", TIMESTAMP),
              Column.required("cause", "text").inByteOrder(),
              Column.required("request", "text").inByteOrder().defaulting("''::text"),
              Column.optional("missed_first", TIMESTAMP),
              Column.required("missed_count", "bigint").defaulting("0"),
              Column.required("status", "text").inByteOrder(),
              Column.optional("message_id", "bigint"),
              Column.required("lease_token", "bigint").defaulting("0"),
              Column.required("attempts_count", "integer").defaulting("0"),
              Column.required("created_at", TIMESTAMP).defaulting(NOW),
              Column.optional("started_at", TIMESTAMP),
              Column.optional("ended_at", TIMESTAMP),
              Column.optional("cancelled_at", TIMESTAMP),
              Column.optional("awaited_by", "text").inByteOrder(),
              Column.optional("last_error", "text")),
          List.of(
              Index.primaryKey("id"),
              Index.unique("application", "name", "instant", "cause", "request"),
              Index.plain("application", "name", "request")
                  .uniqueWhere("(cause = ANY (ARRAY['manual'::text, 'startup'::text]))"),
              Index.plain("application", "name", "instant").where("(ended_at IS NULL)"),
              Index.plain("application", "name").where("(status = 'waiting'::text)"),
              Index.plain("application", "name", "ended_at").where("(status = 'succeeded'::text)"),
              Index.plain("message_id").where("(ended_at IS NULL)")),
          "",
          true,
          List.of(
              new Setting("fillfactor", "70"),
              new Setting("autovacuum_vacuum_scale_factor", "0"),
              new Setting("autovacuum_vacuum_threshold", "1000")));

  private static final Layout LOCKS =
      new Layout(
          "table of locks",
          1,
          List.of(
              Column.required("application", "text").inByteOrder(),
              Column.required("name", "text").inByteOrder(),
              Column.required("token", "bigint").defaulting(Column.IDENTITY),
              Column.optional("owner", "text"),
              Column.required("held_until", TIMESTAMP),
              Column.required("acquired_at", TIMESTAMP).defaulting(NOW),
              Column.required("renewed_at", TIMESTAMP).defaulting(NOW)),
          List.of(
              Index.primaryKey("application", "name"),
              Index.unique("application", "name", "token")),
          "",
          true,
          List.of(
              new Setting("fillfactor", "50"),
              new Setting("autovacuum_vacuum_scale_factor", "0"),
              new Setting("autovacuum_vacuum_threshold", "1000")));

  private static final Layout MONITORS =
      new Layout(
          "table of monitors",
          1,
          List.of(
              Column.required("application", "text").inByteOrder(),
              Column.required("id", "text").inByteOrder(),
              Column.required("type", "text").inByteOrder(),
              Column.required("execution", "bigint").defaulting(Column.IDENTITY),
              Column.required("status", "text").inByteOrder().defaulting("'pending'::text"),
              Column.optional("outcome", "text").inByteOrder(),
              Column.required("iteration", "bigint").defaulting("0").used(OFTEN_WRITTEN),
              Column.required("attempts_count", "integer").defaulting("0").used(OFTEN_WRITTEN),
              Column.optional("first_failed_at", TIMESTAMP).used(OFTEN_WRITTEN),
              Column.optional("last_error", "text").used(OFTEN_WRITTEN),
              Column.optional("error_type", "text"),
              Column.optional("error_stack", "text"),
              Column.required("input", "json"),
              Column.optional("state", "json").used(OFTEN_WRITTEN),
              Column.optional("custom_status", "json").used(OFTEN_WRITTEN),
              Column.optional("output", "json"),
              Column.optional("parent", "text").inByteOrder(),
              Column.required("history", "integer").defaulting("100"),
              Column.required("waits_for", "text[]").defaulting("'{}'::text[]").used(OFTEN_WRITTEN),
              Column.required("unseen", "text[]").defaulting("'{}'::text[]").used(OFTEN_WRITTEN),
              Column.required("woken", "boolean").defaulting("false").used(OFTEN_WRITTEN),
              Column.optional("overtime_at", TIMESTAMP).used(OFTEN_WRITTEN),
              Column.optional("message_id", "bigint"),
              Column.required("created_at", TIMESTAMP).defaulting("clock_timestamp()"),
              Column.required("updated_at", TIMESTAMP)
                  .defaulting("clock_timestamp()")
                  .used(OFTEN_WRITTEN),
              Column.optional("started_at", TIMESTAMP),
              Column.optional("ended_at", TIMESTAMP),
              Column.optional("expires_at", TIMESTAMP),
              Column.optional("due_at", TIMESTAMP).used(OFTEN_WRITTEN)),
          List.of(
              Index.primaryKey("application", "id"),
              Index.plain("application", "created_at", "id"),
              Index.plain("application", "status", "created_at", "id"),
              Index.plain("application", "parent", "id").where("(parent IS NOT NULL)"),
              Index.plain("application", "id").where("(ended_at IS NULL)"),
              Index.plain("application", "expires_at")
                  .where("((ended_at IS NULL) AND (expires_at IS NOT NULL))"),
              Index.plain("application", "ended_at").where("(status = 'failed'::text)"),
              Index.plain("message_id").where("(ended_at IS NULL)")),
          "every check writes it",
          true,
          List.of(
              new Setting("fillfactor", "50"),
              new Setting("autovacuum_vacuum_scale_factor", "0"),
              new Setting("autovacuum_vacuum_threshold", "1000")));

  private static final Layout MONITOR_EVENTS =
      new Layout(
          "table of the events of monitors",
          1,
          List.of(
              Column.required("id", "bigint").defaulting(Column.IDENTITY),
              Column.required("application", "text").inByteOrder(),
              Column.required("monitor_id", "text").inByteOrder(),
              Column.required("execution", "bigint"),
              Column.required("kind", "text").inByteOrder(),
              Column.required("iteration", "bigint").defaulting("0"),
              Column.optional("name", "text").inByteOrder(),
              Column.optional("payload", "json"),
              Column.optional("detail", "text"),
              Column.required("unseen", "boolean").defaulting("false"),
              Column.required("created_at", TIMESTAMP).defaulting("clock_timestamp()")),
          List.of(Index.primaryKey("id"), Index.plain("application", "monitor_id", "id")),
          "",
          true,
          List.of(
              new Setting("autovacuum_vacuum_scale_factor", "0"),
              new Setting("autovacuum_vacuum_threshold", "1000"),
              new Setting("autovacuum_vacuum_insert_scale_factor", "0"),
              new Setting("autovacuum_vacuum_insert_threshold", "100000")));

  private static final Layout POLLERS =
      new Layout(
          "table of table pollers",
          1,
          List.of(
              Column.required("application", "text").inByteOrder(),
              Column.required("name", "text").inByteOrder(),
              Column.required("version", "bigint").defaulting("1"),
              Column.required("fingerprint", "jsonb").defaulting("'{}'::jsonb"),
              Column.required("begun", "boolean").defaulting("false"),
              Column.required("position_side", "text")
                  .inByteOrder()
                  .defaulting("'BEGINNING'::text"),
              Column.required("position_type", "text").inByteOrder().defaulting("''::text"),
              Column.required("position_cursor", "text").inByteOrder().defaulting("''::text"),
              Column.required("position_key", "text[]").defaulting("'{}'::text[]"),
              Column.optional("positioned_at", TIMESTAMP),
              Column.required("first_cursor", "text").inByteOrder().defaulting("''::text"),
              Column.required("end_type", "text").inByteOrder().defaulting("''::text"),
              Column.required("end_cursor", "text").inByteOrder().defaulting("''::text"),
              Column.optional("finished_at", TIMESTAMP),
              Column.optional("owner", "text").inByteOrder(),
              Column.optional("lease_until", TIMESTAMP),
              Column.required("token", "bigint").defaulting("0"),
              Column.optional("paused_at", TIMESTAMP),
              Column.optional("paused_by", "text"),
              Column.optional("pause_reason", "text"),
              Column.optional("failing_since", TIMESTAMP),
              Column.optional("failure", "text").inByteOrder(),
              Column.optional("last_error", "text"),
              Column.required("failures_count", "integer").defaulting("0"),
              Column.required("attempts_count", "integer").defaulting("0"),
              Column.optional("retry_at", TIMESTAMP),
              Column.required("failing_side", "text").inByteOrder().defaulting("''::text"),
              Column.required("failing_type", "text").inByteOrder().defaulting("''::text"),
              Column.required("failing_cursor", "text").inByteOrder().defaulting("''::text"),
              Column.required("failing_key", "text[]").defaulting("'{}'::text[]"),
              Column.optional("last_tick_at", TIMESTAMP),
              Column.optional("last_success_at", TIMESTAMP),
              Column.optional("complete_at", TIMESTAMP),
              Column.optional("held_back", "text"),
              Column.required("rows_count", "bigint").defaulting("0"),
              Column.required("batches_count", "bigint").defaulting("0"),
              Column.required("created_at", TIMESTAMP).defaulting(NOW)),
          List.of(Index.primaryKey("application", "name")),
          "",
          true,
          List.of(
              new Setting("fillfactor", "50"),
              new Setting("autovacuum_vacuum_scale_factor", "0"),
              new Setting("autovacuum_vacuum_threshold", "1000")));

  private static final Layout POLLER_HISTORY =
      new Layout(
          "table of what was done to table pollers",
          1,
          List.of(
              Column.required("id", "bigint").defaulting(Column.IDENTITY),
              Column.required("application", "text").inByteOrder(),
              Column.required("name", "text").inByteOrder(),
              Column.required("changed_at", TIMESTAMP).defaulting(NOW),
              Column.required("verb", "text").inByteOrder(),
              Column.required("changed_by", "text"),
              Column.required("reason", "text"),
              Column.required("version_before", "bigint"),
              Column.required("version_after", "bigint"),
              Column.required("position_before", "jsonb"),
              Column.required("position_after", "jsonb")),
          List.of(Index.primaryKey("id"), Index.plain("application", "name", "id")),
          "",
          true,
          List.of());

  private static final Layout POLLER_QUARANTINE =
      new Layout(
          "table of the rows that table pollers have in quarantine",
          1,
          List.of(
              Column.required("id", "bigint").defaulting(Column.IDENTITY),
              Column.required("application", "text").inByteOrder(),
              Column.required("name", "text").inByteOrder(),
              Column.required("event_id", "text").inByteOrder(),
              Column.required("operation", "text").inByteOrder(),
              Column.required("source", "text"),
              Column.required("cursor_type", "text").inByteOrder(),
              Column.required("cursor_text", "text").inByteOrder(),
              Column.required("row_key", "json"),
              Column.required("row_after", "json"),
              Column.required("row_types", "json"),
              Column.required("last_error", "text"),
              Column.required("attempts_count", "integer").defaulting("1"),
              Column.required("first_failed_at", TIMESTAMP).defaulting(NOW),
              Column.required("last_failed_at", TIMESTAMP).defaulting(NOW),
              Column.optional("redrive_at", TIMESTAMP)),
          List.of(
              Index.primaryKey("id"),
              Index.unique("application", "name", "event_id"),
              Index.plain("application", "name", "redrive_at").where("(redrive_at IS NOT NULL)")),
          "",
          true,
          List.of());

  private static final List<Setting> OF_JOBS =
      List.of(
          new Setting("autovacuum_vacuum_scale_factor", "0"),
          new Setting("autovacuum_vacuum_threshold", "1000"));

  private static final Layout JOBS =
      new Layout(
          "table of jobs",
          1,
          List.of(
              Column.required("queue", "text").inByteOrder(),
              Column.required("job_id", "text").inByteOrder(),
              Column.required("type", "text").inByteOrder(),
              Column.required("message_id", "bigint").defaulting("0"),
              Column.required("enqueued_at", TIMESTAMP),
              Column.required("due_at", TIMESTAMP)),
          List.of(
              Index.primaryKey("queue", "job_id"),
              Index.plain("message_id"),
              Index.plain("queue", "due_at")),
          "",
          true,
          OF_JOBS);

  private static final Layout JOB_ENDS =
      new Layout(
          "table of how jobs ended",
          1,
          List.of(
              Column.required("message_id", "bigint"),
              Column.required("queue", "text").inByteOrder(),
              Column.required("job_id", "text").inByteOrder(),
              Column.required("status", "text").inByteOrder(),
              Column.optional("reason", "text"),
              Column.required("attempts_count", "integer").defaulting("0"),
              Column.required("deliveries_count", "integer").defaulting("0"),
              Column.required("ended_at", TIMESTAMP)),
          List.of(Index.primaryKey("message_id"), Index.plain("queue", "status", "ended_at")),
          "",
          true,
          OF_JOBS);

  private static final Layout INBOX =
      new Layout(
          "inbox table",
          1,
          List.of(
              Column.required("queue", "text").inByteOrder(),
              Column.required("message_key", "text").inByteOrder(),
              Column.required("processed_at", TIMESTAMP).defaulting(NOW),
              Column.required("expires_at", TIMESTAMP)),
          List.of(Index.primaryKey("queue", "message_key"), Index.plain("expires_at")),
          "",
          true,
          List.of(
              new Setting("autovacuum_vacuum_scale_factor", "0"),
              new Setting("autovacuum_vacuum_threshold", "10000")));

  /** Copies the lists. */
  public Layout {
    columns = List.copyOf(columns);
    indexes = List.copyOf(indexes);
    settings = List.copyOf(settings);
  }

  /** Returns the layout of a table. */
  public static Layout of(Place place) {
    return switch (place) {
      case OUTBOX -> OUTBOX;
      case SLEEPERS -> SLEEPERS;
      case DEAD_LETTERS -> DEAD_LETTERS;
      case DEAD_LETTER_TRIPS -> DEAD_LETTER_TRIPS;
      case DEAD_LETTER_AUDIT -> DEAD_LETTER_AUDIT;
      case BUCKETS -> BUCKETS;
      case BUCKET_OWNERS -> BUCKET_OWNERS;
      case PAUSES -> PAUSES;
      case DEDUP -> DEDUP;
      case SLOTS -> SLOTS;
      case TIMERS -> TIMERS;
      case TIMER_RUNS -> TIMER_RUNS;
      case LOCKS -> LOCKS;
      case MONITORS -> MONITORS;
      case MONITOR_EVENTS -> MONITOR_EVENTS;
      case JOBS -> JOBS;
      case JOB_ENDS -> JOB_ENDS;
      case POLLERS -> POLLERS;
      case POLLER_HISTORY -> POLLER_HISTORY;
      case POLLER_QUARANTINE -> POLLER_QUARANTINE;
      case INBOX -> INBOX;
    };
  }

  /** The names of the columns that are used so, in order. */
  public List<String> columns(Column.Use use) {
    return columns.stream()
        .filter(column -> column.uses().contains(use))
        .map(Column::name)
        .toList();
  }

  /** The text by which a comment or a function body tells the schema's version. */
  public static String stamp(int version) {
    return "outbox4j schema " + version;
  }

  private static Column message(Column column) {
    return column.used(PUBLISHER_INSERTS, OPERATOR_INSERTS);
  }

  private static Column replaced(Column column) {
    return message(column).used(REPLACER_UPDATES, REPLACER_READS); // what is excluded is read
  }

  private static Column claimed(Column column) {
    return column.used(SUBSCRIBER_UPDATES, OFTEN_WRITTEN, REPLACER_UPDATES);
  }

  private static Column attempt(Column column) {
    return column.used(SUBSCRIBER_UPDATES, REPLACER_UPDATES);
  }

  private static Column moved(Column column) {
    return column.used(SUBSCRIBER_INSERTS);
  }

  /** Of a letter that was redriven, and failed again. */
  private static Column movedAgain(Column column) {
    return moved(column).used(SUBSCRIBER_UPDATES);
  }

  private static Column heldBy(Column column) {
    return column.used(SUBSCRIBER_READS);
  }
}
