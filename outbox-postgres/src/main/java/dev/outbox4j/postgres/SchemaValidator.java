package dev.outbox4j.postgres;

import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.internal.schema.Place;
import dev.outbox4j.postgres.internal.schema.InboxQuestion;
import dev.outbox4j.postgres.internal.schema.SchemaInspection;
import dev.outbox4j.postgres.internal.schema.SchemaQuestion;
import java.time.Duration;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import javax.sql.DataSource;

/**
 * Compares the live catalog with what the code needs. Immutable and thread-safe: each setting
 * returns a new validator.
 *
 * <p>It reads the system catalog only, which needs no grant on the tables, over one connection, and
 * one more for each inbox, in a few statements, and changes nothing. Nothing calls it by itself,
 * {@code start()} neither.
 *
 * <p>Indexes are recognised by their definition, whatever their name. Columns and indexes of your
 * own are no faults, unless an insert would fail for want of a value, or an index mentions a column
 * that every claim writes. Row triggers, rules, checks and foreign keys of your own are faults,
 * since they may drop or refuse what the library writes; {@link #accept} names those that are
 * meant.
 *
 * <p>It also looks at the session: a standby, read-only transactions, and a server before
 * PostgreSQL 13 are faults.
 */
public final class SchemaValidator {
  /** How long {@link #validateSchema} waits for one answer, unless told: 10 s. */
  public static final Duration DEFAULT_TIMEOUT = Duration.ofSeconds(10);

  private final DataSource dataSource;
  private final SchemaQuestion question;

  private SchemaValidator(DataSource dataSource, SchemaQuestion question) {
    this.dataSource = dataSource;
    this.question = question;
  }

  static SchemaValidator of(DataSource dataSource, OutboxTable table) {
    return new SchemaValidator(
        Objects.requireNonNull(dataSource, "dataSource"),
        SchemaQuestion.about(Objects.requireNonNull(table, "table"), DEFAULT_TIMEOUT));
  }

  /**
   * Includes a dead-letter table beside the outbox: in its schema, or on the search path if the
   * outbox is found there.
   *
   * @param table its name
   * @return the validator
   * @throws IllegalArgumentException if the name is not allowed, see {@link
   *     OutboxTable#requireIdentifier}
   */
  public SchemaValidator deadLetters(String table) {
    Names.requireDeadLetters("dead-letter table name", table);
    return new SchemaValidator(
        dataSource, question.withDeadLetters(question.table().schema().orElse(null), table));
  }

  /**
   * Includes a dead-letter table in a schema of its own.
   *
   * @param schema its schema, which need not be on the search path
   * @param table its name
   * @return the validator
   * @throws IllegalArgumentException if a name is not allowed, see {@link
   *     OutboxTable#requireIdentifier}
   */
  public SchemaValidator deadLetters(String schema, String table) {
    OutboxTable.requireIdentifier("dead-letter schema name", schema);
    Names.requireDeadLetters("dead-letter table name", table);
    return new SchemaValidator(dataSource, question.withDeadLetters(schema, table));
  }

  /**
   * Includes what ordered queues need: the two tables of buckets, and for each queue its buckets
   * and its three indexes, which are recognised by their names. With {@link #checkGrants} the
   * grants on these tables are included, too. Replaces the queues named before.
   *
   * @param first a queue whose subscribers are built with {@code ordered()}
   * @param more others
   * @return the validator
   */
  public SchemaValidator orderedQueues(String first, String... more) {
    Set<String> queues = new HashSet<>(List.of(more));
    queues.add(Objects.requireNonNull(first, "first"));
    return new SchemaValidator(dataSource, question.withOrderedQueues(queues));
  }

  /**
   * Includes the table of pauses, which {@code pausable()} subscribers need. With {@link
   * #checkGrants} the grants on it are included, too.
   *
   * @return the validator
   */
  public SchemaValidator pauses() {
    return new SchemaValidator(dataSource, question.with(Place.PAUSES));
  }

  /**
   * Includes the table of dedup keys and its function, which publishers with {@code dedupKey(...)}
   * need. With {@link #checkGrants} the grants on them are included, too, but not that on the
   * sequence of the ids.
   *
   * @return the validator
   */
  public SchemaValidator dedup() {
    return new SchemaValidator(dataSource, question.with(Place.DEDUP));
  }

  /**
   * Includes the table of slots, which subscribers with {@code concurrencyLimit(...)} need. With
   * {@link #checkGrants} the grants on it are included, too.
   *
   * @return the validator
   */
  public SchemaValidator slots() {
    return new SchemaValidator(dataSource, question.with(Place.SLOTS));
  }

  /**
   * Includes the tables of timers and of their runs. With {@link #checkGrants} for subscribing, the
   * grants on them are included, too.
   *
   * @return the validator
   */
  public SchemaValidator timers() {
    return new SchemaValidator(dataSource, question.with(Place.TIMERS).with(Place.TIMER_RUNS));
  }

  /**
   * Includes the table of locks. With {@link #checkGrants} for subscribing, the grants on it are
   * included, too.
   *
   * @return the validator
   */
  public SchemaValidator locks() {
    return new SchemaValidator(dataSource, question.with(Place.LOCKS));
  }

  /**
   * Includes the tables of monitors and of their events. With {@link #checkGrants} for subscribing,
   * the grants on them are included, too.
   *
   * @return the validator
   */
  public SchemaValidator monitors() {
    return new SchemaValidator(
        dataSource, question.with(Place.MONITORS).with(Place.MONITOR_EVENTS));
  }

  /**
   * Includes the tables of job queues and the function that enqueues. With {@link #checkGrants} for
   * publishing or subscribing, the grants on them are included, too.
   *
   * @return the validator
   */
  public SchemaValidator jobs() {
    return new SchemaValidator(dataSource, question.with(Place.JOBS).with(Place.JOB_ENDS));
  }

  /**
   * Includes the tables of table pollers, of their history and of their quarantine. With {@link
   * #checkGrants} for subscribing, the grants on them are included, too. Their sources are not.
   *
   * @return the validator
   */
  public SchemaValidator pollers() {
    return new SchemaValidator(
        dataSource,
        question.with(Place.POLLERS).with(Place.POLLER_HISTORY).with(Place.POLLER_QUARANTINE));
  }

  /**
   * Includes an inbox in the outbox's database.
   *
   * @param inbox the inbox
   * @return the validator
   */
  public SchemaValidator inbox(Inbox inbox) {
    return inbox(dataSource, inbox);
  }

  /**
   * Includes an inbox in whatever database: its table, its key, and that this database can be
   * written to. With {@link #checkGrants} for subscribing, the grants on it are included, too.
   * Several may be named.
   *
   * @param dataSource connections as its handlers get them
   * @param inbox the inbox
   * @return the validator
   */
  public SchemaValidator inbox(DataSource dataSource, Inbox inbox) {
    return new SchemaValidator(
        this.dataSource,
        question.with(
            new InboxQuestion(Objects.requireNonNull(dataSource, "dataSource"), inbox.name())));
  }

  /**
   * Includes storage settings: fillfactor, autovacuum, and that the sleepers are unlogged. Without
   * them everything works, but slowly under load.
   *
   * @return the validator
   */
  public SchemaValidator checkStorage() {
    return new SchemaValidator(dataSource, question.withStorage());
  }

  /**
   * Includes the grants of the connected role for publishing and subscribing.
   *
   * @return the validator
   */
  public SchemaValidator checkGrants() {
    return checkGrants(OutboxRole.PUBLISHER, OutboxRole.SUBSCRIBER);
  }

  /**
   * Includes the grants that the connected role needs for what it is there for, beside what was
   * named before.
   *
   * @param first what it is there for
   * @param more what else
   * @return the validator
   */
  public SchemaValidator checkGrants(OutboxRole first, OutboxRole... more) {
    Set<OutboxRole> roles = EnumSet.of(first, more);
    roles.addAll(question.roles());
    return new SchemaValidator(dataSource, question.withRoles(roles));
  }

  /**
   * Includes the SQL function that publishes, which only triggers and other languages need.
   *
   * @return the validator
   */
  public SchemaValidator checkPublishFunction() {
    return new SchemaValidator(dataSource, question.withFunction());
  }

  /**
   * Accepts triggers, rules and constraints of your own that are meant to be there. Replaces what
   * was accepted before.
   *
   * @param names their names, exactly as the database has them
   * @return the validator
   */
  public SchemaValidator accept(String... names) {
    return new SchemaValidator(dataSource, question.withAccepted(Set.copyOf(List.of(names))));
  }

  /**
   * Sets how long to wait for the answer to one statement.
   *
   * @param timeout from 1 s to 1 h, fractions of a second dropped; default {@link #DEFAULT_TIMEOUT}
   * @return the validator
   * @throws IllegalArgumentException if it is out of range
   */
  public SchemaValidator timeout(Duration timeout) {
    if (timeout.compareTo(Duration.ofSeconds(1)) < 0
        || timeout.compareTo(Duration.ofHours(1)) > 0) {
      throw new IllegalArgumentException("timeout is " + timeout + "; it must be from 1 s to 1 h");
    }
    return new SchemaValidator(dataSource, question.withTimeout(timeout));
  }

  /**
   * Compares. Never throws for want of a database: one that does not answer is a fault like any
   * other, told without its address.
   *
   * @return every difference
   */
  public SchemaReport validateSchema() {
    return new SchemaReport(question.table(), SchemaInspection.faults(dataSource, question));
  }
}
