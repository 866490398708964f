package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import javax.sql.DataSource;

/**
 * The dead-letter table is away for long: healthy messages must flow on, health must say what is
 * wrong, and all must be well by itself once the table is back.
 */
final class DeadLetterOutage {
  private static final double LEAST_SHARE = 0.5;
  private static final Duration ALL_SAY_SO = Duration.ofSeconds(30);

  private final DataSource direct;
  private final Fleet fleet;
  private final Ledger ledger;
  private final Watch watch;
  private final Report report;
  private final int rate;

  DeadLetterOutage(
      DataSource direct, Fleet fleet, Ledger ledger, Watch watch, Report report, int rate) {
    this.direct = direct;
    this.fleet = fleet;
    this.ledger = ledger;
    this.watch = watch;
    this.report = report;
    this.rate = rate;
  }

  /** Returns the seconds until health was well everywhere. */
  double last(Duration time) throws IOException, SQLException {
    String before = watch.now();
    Watch.pause(time.dividedBy(4));
    String broken = watch.now();
    Database.update(direct, "alter table outbox_dlq rename to outbox_dlq_away");
    boolean said;
    try {
      Watch.pause(time);
      said = said(fleet.health(), time);
    } finally {
      Database.update(direct, "alter table outbox_dlq_away rename to outbox_dlq");
    }
    long mended = System.nanoTime();
    if (!said) {
      report.breach("health did not say that the dead letters are broken: " + fleet.health());
    }
    // what is made up for after an outage is no usual rate
    double usual = Math.min(rate, ledger.handledPerSecond(before, broken));
    double meanwhile = ledger.handledPerSecond(broken, watch.now());
    report.healthyShare(meanwhile / usual);
    if (meanwhile < LEAST_SHARE * usual) {
      report.breach(
          "healthy messages fell from %.0f to %.0f a second while the dead letters were broken"
              .formatted(usual, meanwhile));
    }
    return watch.until(
        () -> fleet.health().stream().allMatch("up"::equals),
        "health to say that the dead letters are well again",
        mended);
  }

  /** In a short time not every subscriber needs to get a message that fails for good. */
  private static boolean said(List<String> health, Duration time) {
    return time.compareTo(ALL_SAY_SO) >= 0
        ? health.stream().allMatch(DeadLetterOutage::saysWhatIsWrong)
        : health.stream().anyMatch(DeadLetterOutage::saysWhatIsWrong);
  }

  private static boolean saysWhatIsWrong(String health) {
    return health.startsWith("down")
        && health.contains("dead letters wait")
        && health.contains("outbox_dlq");
  }
}
