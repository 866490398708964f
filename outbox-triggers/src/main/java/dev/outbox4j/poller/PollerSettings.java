package dev.outbox4j.poller;

import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What a poller was told. Changed only before the poller that holds it is made. */
final class PollerSettings {
  List<String> columns = List.of();
  @Nullable String condition;
  List<Object> values = List.of();
  int batchSize = 500;
  Duration pollInterval = Duration.ofSeconds(1);
  Duration lease = Duration.ofSeconds(30);
  Position start = Position.beginning();
  boolean startsNow;
  boolean startsPaused;
  @Nullable Position end;
  boolean endsNow;

  /** Zero is no limit. */
  int rate;

  Duration firstWait = Duration.ofSeconds(1);
  Duration longestWait = Duration.ofMinutes(1);

  /** Zero is never. */
  int isolateAfter;

  PollerSettings copy() {
    PollerSettings copy = new PollerSettings();
    copy.columns = columns;
    copy.condition = condition;
    copy.values = values;
    copy.batchSize = batchSize;
    copy.pollInterval = pollInterval;
    copy.lease = lease;
    copy.start = start;
    copy.startsNow = startsNow;
    copy.startsPaused = startsPaused;
    copy.end = end;
    copy.endsNow = endsNow;
    copy.rate = rate;
    copy.firstWait = firstWait;
    copy.longestWait = longestWait;
    copy.isolateAfter = isolateAfter;
    return copy;
  }
}
