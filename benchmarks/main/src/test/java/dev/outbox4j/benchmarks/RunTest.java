package dev.outbox4j.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What keeps a run's results out of the documentation. */
class RunTest {
  private final Server nowhere = nowhere();

  static Server nowhere() {
    System.setProperty("url", "jdbc:postgresql://localhost:1/none");
    try {
      return Server.start();
    } finally {
      System.clearProperty("url");
    }
  }

  @AfterEach
  void clear() {
    Settings.CHANGING.forEach(System::clearProperty);
  }

  @Test
  void everySettingThatChangesFiguresKeepsThemOutOfTheDocumentation() {
    assertThat(Settings.shrunk()).isFalse();
    for (String name :
        List.of("rows", "rounds", "warmup.seconds", "peer.seconds", "server", "heap")) {
      System.setProperty(name, "1");
      assertThat(Settings.shrunk()).as(name).isTrue();
      assertThat(run(Duration.ofDays(1), lane -> {}).amiss()).hasSize(1);
      System.clearProperty(name);
    }
  }

  @Test
  void fullRunGoesToTheDocumentation() {
    List<String> amiss = run(Duration.ofDays(1), lane -> {}).amiss();
    assertThat(amiss).isEmpty();
    assertThat(Settings.out(false)).endsWithRaw(Path.of("docs/benchmarks.json"));
  }

  @Test
  void laneThatWasCutShortDoesNot() {
    assertThat(run(Duration.ZERO, lane -> {}).amiss())
        .containsExactly("ended before its last round");
    assertThat(run(Duration.ofDays(1), Run::cutShort).amiss()).hasSize(1);
    assertThat(Settings.out(true)).endsWithRaw(Path.of("benchmarks/target/benchmarks.json"));
  }

  @Test
  void oneThatEndedBeforeTheRunWasCutShortStillDoes() {
    Run run = run(Duration.ofDays(1), lane -> {});
    run.cutShort();
    assertThat(run.amiss()).isEmpty();
  }

  @Test
  void laneThatBreaksKeepsWhatItHasAndDoesNotEndTheOthers() {
    Run run =
        run(
            Duration.ofDays(1),
            lane -> {
              lane.results().add("cell", "outbox4j", new Numbers().with("rate", 1));
              lane.turn("cell", 0, List.of(Roster.OURS), (entrant, database) -> new Numbers());
            });
    assertThat(run.failures()).containsOnlyKeys("lane broken");
    assertThat(run.amiss()).hasSize(2);
    assertThat(run.results().median("cell", "outbox4j", "rate")).contains(new Figure(1, 1, 1, 1));
  }

  @Test
  void lostOrEarlyMessagesFailThoseThatFiguresAreDrawnOf() throws IOException {
    for (Entrant entrant : List.of(Roster.OURS, Roster.TWIN, Roster.NOTIFY)) {
      assertFails(entrant, new Numbers().with("complete", 0));
      assertFails(entrant, new Numbers().with("missing", 1));
      assertFails(entrant, new Numbers().with("early", 1));
      assertFails(entrant, new Numbers().with("rows_left", 1));
      Run.sound(entrant, new Numbers().with("complete", 1).with("repeated", 7));
    }
    Run.sound(Roster.PEERS.get(0), new Numbers().with("complete", 0));
    Run.sound(Roster.SHAPES.get(0), new Numbers().with("complete", 0));
  }

  @Test
  void nobodyAlwaysFollowsTheSameOther() {
    List<Entrant> all = List.of(Roster.TWIN, Roster.OURS, Roster.SMALL_HEAP, Roster.PEERS.get(0));
    assertThat(Run.order(0, all)).isEqualTo(all);
    Map<Entrant, Set<Entrant>> before = new HashMap<>();
    for (int round = 0; round < 5; round++) {
      List<Entrant> order = Run.order(round, all);
      assertThat(order).containsExactlyInAnyOrderElementsOf(all);
      for (int i = 1; i < order.size(); i++) {
        before.computeIfAbsent(order.get(i), e -> new HashSet<>()).add(order.get(i - 1));
      }
    }
    assertThat(before).hasSize(4).allSatisfy((e, others) -> assertThat(others).hasSize(2));
  }

  @Test
  void ofTwoEachIsTheFirstAboutAsOften() {
    List<Entrant> two = List.of(Roster.TWIN, Roster.SMALL_HEAP);
    assertThat(IntStream.range(0, 5).mapToObj(round -> Run.order(round, two).get(0)))
        .containsExactly(
            Roster.TWIN, Roster.SMALL_HEAP, Roster.SMALL_HEAP, Roster.TWIN, Roster.TWIN);
  }

  @Test
  void turnsInASessionCountFromTheSecondOnAndOneThatFailsTakesNoMore() {
    List<Entrant> turns = new ArrayList<>();
    List<Entrant> all = List.of(Roster.TWIN, Roster.OURS, Roster.SMALL_HEAP);
    Run run =
        run(
            Duration.ofDays(1),
            lane -> {
              for (int round = 0; round < 2; round++) {
                lane.turnInSession(
                    "cell",
                    round,
                    all,
                    "shared",
                    (entrant, database) -> {
                      assertThat(database).isEqualTo("shared");
                      turns.add(entrant);
                      if (entrant.equals(Roster.OURS) && turns.size() > 3) {
                        throw new IOException("broken");
                      }
                      return new Numbers().with("rate", turns.size());
                    });
              }
            });
    assertThat(turns)
        .containsExactly(
            Roster.TWIN,
            Roster.OURS,
            Roster.SMALL_HEAP, // these do not count
            Roster.TWIN,
            Roster.OURS,
            Roster.SMALL_HEAP,
            Roster.SMALL_HEAP,
            Roster.TWIN, // nor these
            Roster.SMALL_HEAP,
            Roster.TWIN);
    assertThat(run.failures()).containsOnlyKeys("cell outbox4j");
    Map<String, List<Numbers>> measured = run.results().cells().get("cell");
    assertThat(measured).containsOnlyKeys(Roster.TWIN.label(), Roster.SMALL_HEAP.label());
    assertThat(measured.get(Roster.TWIN.label()))
        .extracting(numbers -> numbers.values().get("rate"))
        .containsExactly(4.0, 10.0);
  }

  @Test
  void thoseWhoWorkAtOnceTakeEachOthersPlaceFromRoundToRound() {
    List<Entrant> two = List.of(Roster.TWIN, Roster.SMALL_HEAP);
    Run run =
        run(
            Duration.ofDays(1),
            lane -> {
              for (int round = 0; round < 2; round++) {
                lane.atOnce(
                    "cell",
                    round,
                    two,
                    "shared",
                    (entrants, database) ->
                        List.of(new Numbers().with("place", 1), new Numbers().with("place", 2)));
              }
            });
    Map<String, List<Numbers>> measured = run.results().cells().get("cell");
    assertThat(measured.get(Roster.TWIN.label()))
        .extracting(numbers -> numbers.values().get("place"))
        .containsExactly(1.0, 2.0);
    assertThat(measured.get(Roster.SMALL_HEAP.label()))
        .extracting(numbers -> numbers.values().get("place"))
        .containsExactly(2.0, 1.0);
  }

  private static void assertFails(Entrant entrant, Numbers numbers) {
    assertThatThrownBy(() -> Run.sound(entrant, numbers)).isInstanceOf(IOException.class);
  }

  private interface Work {
    void on(Run run) throws IOException, SQLException;
  }

  private Run run(Duration time, Work work) {
    PrintStream out = new PrintStream(new ByteArrayOutputStream(), true, StandardCharsets.UTF_8);
    Run run = new Run(nowhere, out, System.nanoTime() + time.toNanos());
    run.run(
        new Lane() {
          @Override
          public String name() {
            return "broken";
          }

          @Override
          public void run(Run run) throws IOException, SQLException {
            work.on(run);
          }
        });
    return run;
  }
}
