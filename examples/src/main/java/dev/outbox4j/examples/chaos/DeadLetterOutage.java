package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;

/**
 * The dead-letter table is away for long: healthy messages must flow on at half the rate that is
 * asked for, health must say what is wrong, and all must be well by itself once the table is back.
 */
final class DeadLetterOutage {
  private static final double LEAST_SHARE = 0.5;
  private static final double USUAL_SHARE = 0.8;
  private static final Duration USUAL_TIME = Duration.ofSeconds(2);
  private static final Duration ALL_SAY_SO = Duration.ofSeconds(30);

  private final Scene scene;
  private final Ledger ledger;
  private final Watch watch;
  private final Report report;
  private final int rate;

  DeadLetterOutage(Scene scene) {
    this.scene = scene;
    this.ledger = scene.ledger();
    this.watch = scene.watch();
    this.report = scene.report();
    this.rate = scene.settings().rate();
  }

  /** Returns how long all took to be well again. */
  Recovery last() throws IOException, InterruptedException, SQLException {
    Duration time = scene.settings().deadLetterOutage();
    if (!scene.deeds().sham()) {
      // from the fault before, a low rate could be left that half is easily had of
      watch.until(
          this::flowsAsUsual, "a rate of " + USUAL_SHARE + " of what is asked for", watch.since());
    }
    String broken = watch.now();
    scene.deeds().act(scene.schema()::dropDeadLetters);
    List<String> health;
    String mended;
    try {
      Watch.pause(time);
      health = scene.fleet().health();
      mended = watch.now();
    } finally {
      scene.deeds().act(scene.schema()::createDeadLetters);
    }
    if (!scene.deeds().sham()) { // which is told by its evidence
      judge(health, time, ledger.handledPerSecond(broken, mended) / rate);
    }
    return scene.recovery();
  }

  private void judge(List<String> health, Duration time, double share) {
    if (!said(health, time)) {
      report.breach("health did not say that the dead letters are broken: " + health);
    }
    report.healthyShare(share);
    if (share < LEAST_SHARE) {
      report.breach("with broken dead letters only %.2f of the rate were handled".formatted(share));
    }
  }

  private boolean flowsAsUsual() throws SQLException {
    String from = watch.now();
    Watch.pause(USUAL_TIME);
    return ledger.handledPerSecond(from, watch.now()) >= USUAL_SHARE * rate;
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
