package dev.outbox4j.dlq;

import java.time.Duration;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * What is kept, and for how long.
 *
 * @param by who is in the audit
 * @param keepResolved how long letters are kept after they were resolved
 * @param keepAll how long letters are kept after they failed, whatever has become of them; null for
 *     ever, if nobody resolves them
 * @param every how often it is looked
 * @param ahead how many coming partitions there are
 */
record RetentionSettings(
    String by, Duration keepResolved, @Nullable Duration keepAll, Duration every, int ahead) {

  /**
   * How far partitions reach at least, whatever their number: past the next look, if it is late.
   */
  Duration reach() {
    return every.plus(every.dividedBy(10)).plus(Duration.ofDays(1));
  }

  /** In words, for the audit. */
  String words() {
    return "resolved for %s%s"
        .formatted(
            text(keepResolved), keepAll == null ? "" : ", or failed before " + text(keepAll));
  }

  private static String text(Duration duration) {
    return duration.toString().substring(1).replace("T", "").toLowerCase(Locale.ROOT);
  }
}
