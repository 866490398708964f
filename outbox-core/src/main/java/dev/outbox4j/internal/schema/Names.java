package dev.outbox4j.internal.schema;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.LocalDate;
import java.time.format.DateTimeFormatter;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The rules for names, and every name that is derived from a table's. A name that passes can be
 * quoted and put into a statement.
 */
public final class Names {
  /** The bytes PostgreSQL keeps of an identifier. */
  public static final int MAX_BYTES = 63;

  /** The bytes of an outbox table's name; longer suffixes than today's still fit. */
  public static final int MAX_OUTBOX_BYTES = 32;

  /** The bytes of a dead-letter table's name: an outbox's and {@code _dlq}. */
  public static final int MAX_DEAD_LETTER_BYTES = 36;

  /** The bytes of an inbox table's name. */
  public static final int MAX_INBOX_BYTES = 36;

  private static final Pattern ALLOWED = Pattern.compile("[\\p{L}_][\\p{L}\\p{N}_ -]*");
  private static final Pattern PLAIN = Pattern.compile("[a-z_][a-z0-9_]*");

  private Names() {}

  /**
   * Checks the name of a schema or of any table.
   *
   * @param what the name's role, for the error text
   * @throws IllegalArgumentException if it has other characters or is too long
   */
  public static String requireIdentifier(String what, String name) {
    Objects.requireNonNull(name, what);
    if (!ALLOWED.matcher(name).matches()) {
      throw new IllegalArgumentException(
          "%s '%s' is not allowed; use letters, digits, _, - and spaces, beginning with a letter or _"
              .formatted(what, name.replaceAll("\\p{Cntrl}", "?")));
    }
    if (bytes(name) > MAX_BYTES) {
      throw new IllegalArgumentException(
          "%s '%s' is %d bytes long and PostgreSQL keeps %d; shorten it"
              .formatted(what, name, bytes(name), MAX_BYTES));
    }
    return name;
  }

  /** Checks the name of an outbox table. */
  public static String requireOutbox(String what, String name) {
    return requireShort(what, requireIdentifier(what, name), MAX_OUTBOX_BYTES);
  }

  /** Checks the name of a dead-letter table. */
  public static String requireDeadLetters(String what, String name) {
    return requireShort(what, requireIdentifier(what, name), MAX_DEAD_LETTER_BYTES);
  }

  /** Checks the name of an inbox table. */
  public static String requireInbox(String what, String name) {
    return requireShort(what, requireIdentifier(what, name), MAX_INBOX_BYTES);
  }

  private static String requireShort(String what, String name, int most) {
    if (bytes(name) > most) {
      throw new IllegalArgumentException(
          "%s '%s' is %d bytes long and may have %d, since other names are derived from it; shorten it by %d bytes"
              .formatted(what, name, bytes(name), most, bytes(name) - most));
    }
    return name;
  }

  /** The channel on which publishers notify. */
  public static String channel(String outbox) {
    return "outbox_" + outbox;
  }

  /** The index that serves claims. */
  public static String claimIndex(String outbox) {
    return outbox + "_claim_idx";
  }

  /** The unique index on timer ids. */
  public static String timerIndex(String outbox) {
    return outbox + "_timer_uq";
  }

  /** The table of sleeping subscribers. */
  public static String sleepers(String outbox) {
    return outbox + "_sleepers";
  }

  /** The table of the buckets of ordered queues. */
  public static String buckets(String outbox) {
    return outbox + "_buckets";
  }

  /** The table of those who own buckets. */
  public static String bucketOwners(String outbox) {
    return outbox + "_bucket_owners";
  }

  /** The history of the migrations of ordered queues. */
  public static String orderedHistory(String outbox) {
    return outbox + "_ordered_history";
  }

  /** The table of the pauses of queues. */
  public static String pauses(String outbox) {
    return outbox + "_pauses";
  }

  /** The history of the migrations of pauses. */
  public static String pausesHistory(String outbox) {
    return outbox + "_pauses_history";
  }

  /** The unique index on the pauses that last. */
  public static String openPauseIndex(String outbox) {
    return pauses(outbox) + "_open_uq";
  }

  /** The table of the dedup keys that were published. */
  public static String dedup(String outbox) {
    return outbox + "_dedup";
  }

  /** The function that takes dedup keys. */
  public static String dedupTake(String outbox) {
    return outbox + "_dedup_take";
  }

  /** The history of the migrations of dedup keys. */
  public static String dedupHistory(String outbox) {
    return outbox + "_dedup_history";
  }

  /** The index by which keys are found whose windows are over. */
  public static String dedupIndex(String outbox) {
    return dedup(outbox) + "_kept_idx";
  }

  /** The table of the slots of queues whose concurrency is limited. */
  public static String slots(String outbox) {
    return outbox + "_slots";
  }

  /** The history of the migrations of slots. */
  public static String slotsHistory(String outbox) {
    return outbox + "_slots_history";
  }

  /** The table of timers. */
  public static String timers(String outbox) {
    return outbox + "_timer";
  }

  /** The table of the runs of timers. */
  public static String timerRuns(String outbox) {
    return outbox + "_timer_run";
  }

  /** The history of the migrations of timers. */
  public static String timersHistory(String outbox) {
    return outbox + "_timer_history";
  }

  /** The channel on which is told that a timer is to be looked at. */
  public static String timersChannel(String outbox) {
    return channel(timers(outbox));
  }

  /** The table of locks. */
  public static String locks(String outbox) {
    return outbox + "_lock";
  }

  /** The history of the migrations of locks. */
  public static String locksHistory(String outbox) {
    return outbox + "_lock_history";
  }

  /** The channel on which is told that a lock was released. */
  public static String locksChannel(String outbox) {
    return channel(locks(outbox));
  }

  /** The table of the instances of monitors. */
  public static String monitors(String outbox) {
    return outbox + "_monitor";
  }

  /** The table of what has happened to instances of monitors. */
  public static String monitorEvents(String outbox) {
    return outbox + "_monitor_event";
  }

  /** The history of the migrations of monitors. */
  public static String monitorsHistory(String outbox) {
    return outbox + "_monitor_history";
  }

  /** The table of jobs. */
  public static String jobs(String outbox) {
    return outbox + "_job";
  }

  /** The table of how jobs ended. */
  public static String jobEnds(String outbox) {
    return outbox + "_job_end";
  }

  /** The function that enqueues jobs. */
  public static String jobEnqueue(String outbox) {
    return outbox + "_job_enqueue";
  }

  /** The history of the migrations of job queues. */
  public static String jobsHistory(String outbox) {
    return outbox + "_job_history";
  }

  /** The table of table pollers. */
  public static String pollers(String outbox) {
    return outbox + "_poller";
  }

  /** The table of what people did to table pollers. */
  public static String pollerHistory(String outbox) {
    return outbox + "_poller_history";
  }

  /** The table of the rows that table pollers have put into quarantine. */
  public static String pollerQuarantine(String outbox) {
    return outbox + "_poller_quarantine";
  }

  /** The history of the migrations of table pollers. */
  public static String pollersHistory(String outbox) {
    return outbox + "_poller_migrations";
  }

  /** The table of an outbox that is at a place of its own; not that of dead letters or an inbox. */
  public static String of(Place place, String outbox) {
    return switch (place) {
      case OUTBOX -> outbox;
      case SLEEPERS -> sleepers(outbox);
      case BUCKETS -> buckets(outbox);
      case BUCKET_OWNERS -> bucketOwners(outbox);
      case PAUSES -> pauses(outbox);
      case DEDUP -> dedup(outbox);
      case SLOTS -> slots(outbox);
      case TIMERS -> timers(outbox);
      case TIMER_RUNS -> timerRuns(outbox);
      case LOCKS -> locks(outbox);
      case MONITORS -> monitors(outbox);
      case MONITOR_EVENTS -> monitorEvents(outbox);
      case JOBS -> jobs(outbox);
      case JOB_ENDS -> jobEnds(outbox);
      case POLLERS -> pollers(outbox);
      case POLLER_HISTORY -> pollerHistory(outbox);
      case POLLER_QUARANTINE -> pollerQuarantine(outbox);
      case DEAD_LETTERS, DEAD_LETTER_TRIPS, DEAD_LETTER_AUDIT, INBOX ->
          throw new IllegalArgumentException(place + " has its own name");
    };
  }

  /** The index by which buckets of an ordered queue are read. */
  public static String bucketIndex(String outbox, String queue) {
    return outbox + "_b_" + shortHash(queue);
  }

  /** The index by which rows of a key are read. */
  public static String keyIndex(String outbox, String queue) {
    return outbox + "_k_" + shortHash(queue);
  }

  /** The index by which rows of an ordered queue are found that fall due. */
  public static String dueIndex(String outbox, String queue) {
    return outbox + "_d_" + shortHash(queue);
  }

  /** Twenty hexadecimal digits: a queue's name may be longer than an index's. */
  private static String shortHash(String queue) {
    try {
      byte[] hash =
          MessageDigest.getInstance("SHA-256").digest(queue.getBytes(StandardCharsets.UTF_8));
      return HexFormat.of().formatHex(hash, 0, 10);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java has SHA-256", e);
    }
  }

  /** The SQL function that publishes. */
  public static String publishFunction(String outbox) {
    return outbox + "_publish";
  }

  /** The dead-letter table of an outbox for which no other is named. */
  public static String deadLetters(String outbox) {
    return outbox + "_dlq";
  }

  /** The index on a queue's open dead letters. */
  public static String deadLetterIndex(String deadLetters) {
    return deadLetters + "_queue_failed_idx";
  }

  /** The index on the open dead letters of ordering keys. */
  public static String deadLetterKeyIndex(String deadLetters) {
    return deadLetters + "_key_idx";
  }

  /** The index on dead letters by time. */
  public static String deadLetterTimeIndex(String deadLetters) {
    return deadLetters + "_failed_idx";
  }

  /** The index on dead letters by the message that they were. */
  public static String deadLetterMessageIndex(String deadLetters) {
    return deadLetters + "_message_idx";
  }

  /** The index on dead letters that nobody has resolved, in the order of their messages. */
  public static String deadLetterOpenIndex(String deadLetters) {
    return deadLetters + "_open_idx";
  }

  /** The table of the redrives of dead letters. */
  public static String deadLetterTrips(String deadLetters) {
    return deadLetters + "_trips";
  }

  /** The table of what was done to dead letters. */
  public static String deadLetterAudit(String deadLetters) {
    return deadLetters + "_audit";
  }

  /** The index on what a retention did, by whether it has ended. */
  public static String deadLetterAuditIndex(String deadLetters) {
    return deadLetterAudit(deadLetters) + "_retention_idx";
  }

  /** The partition for dead letters that no other one takes. */
  public static String deadLetterDefault(String deadLetters) {
    return deadLetters + "_default";
  }

  /** The partition that was the whole table before it had partitions. */
  public static String deadLetterFirst(String deadLetters) {
    return deadLetters + "_first";
  }

  /** A partition for dead letters of some time, by its first day. */
  public static String deadLetterPartition(String deadLetters, LocalDate firstDay) {
    return deadLetters + "_p" + firstDay.format(DateTimeFormatter.BASIC_ISO_DATE);
  }

  /** The constraint that spares the server a scan, while a partition is attached. */
  public static String deadLetterUntil(String deadLetters) {
    return deadLetters + "_until";
  }

  /** The table of dead letters at one of their places. */
  public static String ofDeadLetters(Place place, String deadLetters) {
    return switch (place) {
      case DEAD_LETTERS -> deadLetters;
      case DEAD_LETTER_TRIPS -> deadLetterTrips(deadLetters);
      case DEAD_LETTER_AUDIT -> deadLetterAudit(deadLetters);
      default -> throw new IllegalArgumentException(place + " is not one of dead letters");
    };
  }

  /** The table in which Flyway keeps what was applied, for an outbox or a dead-letter table. */
  public static String history(String table) {
    return table + "_schema_history";
  }

  /** All tables, indexes and sequences of an outbox; they share one name space. */
  public static List<String> relationsOfOutbox(String outbox) {
    return List.of(
        outbox,
        outbox + "_pkey",
        outbox + "_id_seq",
        claimIndex(outbox),
        timerIndex(outbox),
        sleepers(outbox),
        sleepers(outbox) + "_pkey",
        buckets(outbox),
        buckets(outbox) + "_pkey",
        bucketOwners(outbox),
        bucketOwners(outbox) + "_pkey",
        orderedHistory(outbox),
        orderedHistory(outbox) + "_pk",
        orderedHistory(outbox) + "_s_idx",
        pauses(outbox),
        pauses(outbox) + "_pkey",
        pauses(outbox) + "_id_seq",
        openPauseIndex(outbox),
        pausesHistory(outbox),
        pausesHistory(outbox) + "_pk",
        pausesHistory(outbox) + "_s_idx",
        dedup(outbox),
        dedup(outbox) + "_pkey",
        dedupIndex(outbox),
        dedupTake(outbox),
        dedupHistory(outbox),
        dedupHistory(outbox) + "_pk",
        dedupHistory(outbox) + "_s_idx",
        slots(outbox),
        slots(outbox) + "_pkey",
        slotsHistory(outbox),
        slotsHistory(outbox) + "_pk",
        slotsHistory(outbox) + "_s_idx",
        timers(outbox),
        timers(outbox) + "_pkey",
        timers(outbox) + "_due_idx",
        timerRuns(outbox),
        timerRuns(outbox) + "_pkey",
        timerRuns(outbox) + "_id_seq",
        timerRuns(outbox) + "_instant_uq",
        timerRuns(outbox) + "_request_uq",
        timerRuns(outbox) + "_open_idx",
        timerRuns(outbox) + "_message_idx",
        timersHistory(outbox),
        timersHistory(outbox) + "_pk",
        timersHistory(outbox) + "_s_idx",
        locks(outbox),
        locks(outbox) + "_pkey",
        locks(outbox) + "_token_uq",
        locks(outbox) + "_token_seq",
        locksHistory(outbox),
        locksHistory(outbox) + "_pk",
        locksHistory(outbox) + "_s_idx",
        monitors(outbox),
        monitors(outbox) + "_pkey",
        monitors(outbox) + "_execution_seq",
        monitors(outbox) + "_created_idx",
        monitors(outbox) + "_status_idx",
        monitors(outbox) + "_parent_idx",
        monitors(outbox) + "_open_idx",
        monitors(outbox) + "_expiry_idx",
        monitors(outbox) + "_failed_idx",
        monitors(outbox) + "_message_idx",
        monitorEvents(outbox),
        monitorEvents(outbox) + "_pkey",
        monitorEvents(outbox) + "_id_seq",
        monitorEvents(outbox) + "_of_idx",
        monitorsHistory(outbox),
        monitorsHistory(outbox) + "_pk",
        monitorsHistory(outbox) + "_s_idx",
        jobs(outbox),
        jobs(outbox) + "_pkey",
        jobs(outbox) + "_message_idx",
        jobs(outbox) + "_due_idx",
        jobEnds(outbox),
        jobEnds(outbox) + "_pkey",
        jobEnds(outbox) + "_status_idx",
        jobEnqueue(outbox),
        jobsHistory(outbox),
        jobsHistory(outbox) + "_pk",
        jobsHistory(outbox) + "_s_idx",
        pollers(outbox),
        pollers(outbox) + "_pkey",
        pollerHistory(outbox),
        pollerHistory(outbox) + "_pkey",
        pollerHistory(outbox) + "_id_seq",
        pollerHistory(outbox) + "_idx",
        pollerQuarantine(outbox),
        pollerQuarantine(outbox) + "_pkey",
        pollerQuarantine(outbox) + "_id_seq",
        pollerQuarantine(outbox) + "_event_uq",
        pollerQuarantine(outbox) + "_redrive_idx",
        pollersHistory(outbox),
        pollersHistory(outbox) + "_pk",
        pollersHistory(outbox) + "_s_idx",
        history(outbox),
        // what Flyway derives for its history
        history(outbox) + "_pk",
        history(outbox) + "_s_idx");
  }

  /** All tables, indexes and sequences of a dead-letter table. */
  public static List<String> relationsOfDeadLetters(String deadLetters) {
    return List.of(
        deadLetters,
        deadLetters + "_pkey",
        deadLetters + "_id_seq",
        deadLetterIndex(deadLetters),
        deadLetterKeyIndex(deadLetters),
        deadLetterTimeIndex(deadLetters),
        deadLetterMessageIndex(deadLetters),
        deadLetterOpenIndex(deadLetters),
        deadLetterDefault(deadLetters),
        deadLetterFirst(deadLetters),
        deadLetterTrips(deadLetters),
        deadLetterTrips(deadLetters) + "_pkey",
        deadLetterAudit(deadLetters),
        deadLetterAudit(deadLetters) + "_pkey",
        deadLetterAudit(deadLetters) + "_id_seq",
        deadLetterAuditIndex(deadLetters),
        history(deadLetters),
        history(deadLetters) + "_pk",
        history(deadLetters) + "_s_idx");
  }

  /** For statements: always quoted. */
  public static String quoted(String name) {
    return '"' + name.replace("\"", "\"\"") + '"';
  }

  /** For statements: quoted, in its schema if there is one. */
  public static String qualified(@Nullable String schema, String name) {
    return schema == null ? quoted(name) : quoted(schema) + "." + quoted(name);
  }

  /** For statements: a string constant. */
  public static String literal(String text) {
    return "'" + text.replace("'", "''") + "'";
  }

  /** For people: quoted only where it must be. */
  public static String plain(String name) {
    return PLAIN.matcher(name).matches() ? name : quoted(name);
  }

  /** The name's length as PostgreSQL counts it. */
  public static int bytes(String name) {
    return name.getBytes(StandardCharsets.UTF_8).length;
  }
}
