package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.sql.SQLException;
import java.util.Map;

/**
 * The server's clock jumps forward and, after a while, back. The server is restarted before it and
 * after it, since only then can its clock be taken in hand.
 */
final class ClockJump {
  static final int SECONDS = 40;

  private final Scene scene;
  private final Path faker;

  ClockJump(Scene scene, Path faker) {
    this.scene = scene;
    this.faker = faker;
  }

  Episode run() throws IOException, InterruptedException, SQLException {
    Path clock = scene.server().data().resolve(LedgerSchema.SERVER_CLOCK);
    Evidence evidence = new Evidence();
    turn(clock, 0);
    restart(
        Map.of(
            "LD_PRELOAD",
            faker.toString(),
            "FAKETIME_TIMESTAMP_FILE",
            clock.toString(),
            "FAKETIME_NO_CACHE",
            "1",
            "FAKETIME_DONT_FAKE_MONOTONIC",
            "1",
            "DONT_FAKE_MONOTONIC", // the name before 0.9.10
            "1"));
    Recovery recovery;
    try {
      scene.watch().untilAllAreWell(scene.watch().since());
      scene.deeds().act(() -> turn(clock, SECONDS));
      evidence.sign("seconds_forward", secondsFast());
      Watch.pause(Fault.Length.USUAL.time());
      scene.watch().untilAllAreWell(scene.watch().since());
      scene.deeds().act(() -> turn(clock, 0));
      evidence.countersign("seconds_left", secondsFast());
      recovery = scene.recovery();
    } finally {
      restart(Map.of());
      Files.delete(clock);
    }
    scene.watch().untilAllAreWell(scene.watch().since()); // the restart cost every connection
    return new Episode(recovery, evidence);
  }

  private void restart(Map<String, String> environment)
      throws IOException, InterruptedException, SQLException {
    scene.deeds().act(scene.server()::shutDown);
    scene.deeds().act(() -> scene.server().startAgain(environment));
  }

  /** Sets by how many seconds the server's clock is fast. */
  private static void turn(Path clock, int seconds) throws IOException {
    Path next = Files.writeString(clock.resolveSibling("next-clock"), "+" + seconds + "s");
    Files.move(next, clock, StandardCopyOption.ATOMIC_MOVE);
  }

  private long secondsFast() throws SQLException {
    double server =
        scene.number("select (extract(epoch from clock_timestamp()) * 1000)::bigint") / 1e3;
    return Math.round(server - System.currentTimeMillis() / 1e3);
  }
}
