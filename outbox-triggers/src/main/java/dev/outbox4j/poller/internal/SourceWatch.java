package dev.outbox4j.poller.internal;

import java.sql.ResultSet;
import java.time.Duration;
import java.time.Instant;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether a source is the server that it was at the look before, and whether its clock has gone on
 * since as this process's monotonic clock has. Confined to one thread.
 */
final class SourceWatch {
  private static final Logger log = LoggerFactory.getLogger(SourceWatch.class);

  /** A clock may be slower than another one by a part of the time, while it is corrected. */
  private static final int SLOWER = 20;

  private static final Duration LEAST = Duration.ofMillis(100);

  /** The timeline is a part of each name of a file of the log. */
  private static final String TIMELINE =
      "select "
          + SourceServer.COLUMNS
          + ", case when not pg_is_in_recovery()"
          + " then substring(pg_walfile_name(pg_current_wal_lsn()) for 8) end";

  private final SourceDatabase database;
  private final Consumer<String> warned;
  private final Set<String> said = new HashSet<>();
  private @Nullable SourceServer server;
  private @Nullable String timeline;
  private @Nullable Instant at;
  private long received;

  SourceWatch(SourceDatabase database, Consumer<String> warned) {
    this.database = database;
    this.warned = warned;
  }

  /** Warns, once for each subject. */
  void warnOnce(String subject, String warning) {
    if (said.add(subject)) {
      warned.accept(warning);
    }
  }

  /**
   * Takes a look into account.
   *
   * @param now the server that answered
   * @param time what its clock said
   * @param sent before it was asked, by the monotonic clock
   * @param slack how far its clock may be set back without harm
   * @param byClock whether values are kept by its clock
   * @return whether what was found before still counts
   */
  boolean goesOn(SourceServer now, Instant time, long sent, Duration slack, boolean byClock) {
    boolean same = isSame(now);
    boolean clock = clockGoesOn(time, sent, slack, byClock);
    at = time;
    received = System.nanoTime();
    return same && clock;
  }

  private boolean isSame(SourceServer now) {
    SourceServer before = server;
    if (now.equals(before)) {
      return true;
    }
    server = now;
    String was = timeline;
    String is = timelineOf(now);
    timeline = is == null ? was : is;
    if (was != null && is != null && !was.equals(is)) {
      warned.accept(
          "the source was promoted or restored, and is on timeline %s after %s: what it had lost and writes"
                  .formatted(is, was)
              + " anew may be before the position. Set that back to where the histories part, or run"
              + " a backfill");
    }
    return before == null;
  }

  /** Some servers do not tell. */
  private @Nullable String timelineOf(SourceServer of) {
    try {
      return database
          .run(
              "read the timeline",
              TIMELINE,
              statement -> {},
              results -> {
                ResultSet row = results.rows();
                row.next();
                return SourceServer.read(row, 1).equals(of)
                    ? Optional.ofNullable(row.getString(3))
                    : Optional.<String>empty();
              })
          .orElse(null);
    } catch (SourceException e) {
      log.debug("the timeline of a source cannot be read", e);
      return null;
    }
  }

  private boolean clockGoesOn(Instant time, long sent, Duration slack, boolean byClock) {
    Instant before = at;
    if (before == null) {
      return true;
    }
    Duration passed = Duration.ofNanos(Math.max(0, sent - received)); // at least
    Duration allowed = (slack.compareTo(LEAST) > 0 ? slack : LEAST).plus(passed.dividedBy(SLOWER));
    Duration missing = passed.minus(Duration.between(before, time));
    if (missing.compareTo(allowed) <= 0) {
      return true;
    }
    if (byClock) {
      warned.accept(
          "the source's clock was set back by about %s, to %s: rows that were written since then may be"
                  .formatted(missing, time)
              + " before the position. A backfill from that time on finds them");
    }
    return false;
  }
}
