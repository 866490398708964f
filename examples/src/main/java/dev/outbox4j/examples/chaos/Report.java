package dev.outbox4j.examples.chaos;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;

/** What a run found. */
final class Report {
  private final Map<Fault, List<Episode>> faults = new EnumMap<>(Fault.class);
  private final List<String> breaches = new ArrayList<>();
  private final Map<String, Object> figures = new LinkedHashMap<>();
  private double worstAfterKill;
  private double worstAfterServer;
  private double worstAfterPromotion;
  private double leastShareWithHeldHorizon = Double.POSITIVE_INFINITY;
  private double leastHealthyShare = Double.POSITIVE_INFINITY;
  private int kills;
  private int leastHeldAtKill = Integer.MAX_VALUE;
  private long slotsHeldAtKills;
  private double worstSlotsAfterKill;

  void fault(Fault fault, Episode episode, double whole) {
    faults.computeIfAbsent(fault, any -> new ArrayList<>()).add(episode);
    Recovery recovery = episode.recovery();
    say(
        "  %-22s recovered after %5.1f s, all well after %5.1f s (episode %5.1f s)"
            .formatted(fault.label(), recovery.seconds(), recovery.allWellSeconds(), whole));
    Evidence evidence = episode.evidence();
    say("  %-22s %s".formatted("", evidence.counts()));
    if (!evidence.gaps().isEmpty()) {
      breach("nothing shows that " + fault.label() + " happened: " + evidence.gaps());
    }
  }

  /** A long run must have come to each fault. */
  void judgeFaultsDone(List<Fault> wanted) {
    List<String> left =
        wanted.stream().filter(fault -> !faults.containsKey(fault)).map(Fault::label).toList();
    if (!left.isEmpty()) {
      breach("not done, as the time was over: " + left + "; give it more");
    }
  }

  /** Nor may it leave out a pair of faults that are done at once. */
  void judgePairsDone(List<String> left) {
    if (!left.isEmpty()) {
      breach("not done at once, as the time was over: " + left + "; give it more");
    }
  }

  void rowsHeldAtKill(int rows) {
    kills++;
    leastHeldAtKill = Math.min(leastHeldAtKill, rows);
  }

  void recoveryAfterKill(double seconds) {
    worstAfterKill = Math.max(worstAfterKill, seconds);
  }

  /** Notes how many slots of a limited queue it held, and when others had as many instead. */
  void slotsAfterKill(long slots, double seconds) {
    slotsHeldAtKills += slots;
    worstSlotsAfterKill = Math.max(worstSlotsAfterKill, seconds);
  }

  void recoveryAfterServer(double seconds) {
    worstAfterServer = Math.max(worstAfterServer, seconds);
  }

  void recoveryAfterPromotion(double seconds) {
    worstAfterPromotion = Math.max(worstAfterPromotion, seconds);
  }

  /** Notes the share of messages handled while dead rows could not be removed. */
  void shareWithHeldHorizon(double share) {
    leastShareWithHeldHorizon = Math.min(leastShareWithHeldHorizon, share);
  }

  /** Notes the rate of messages handled while dead letters were broken, as a share of the asked. */
  void healthyShare(double share) {
    leastHealthyShare = Math.min(leastHealthyShare, share);
  }

  /** Adds the figures that were gathered fault by fault, and holds them to their bounds. */
  void judgeRecoveries(long killLimit, long serverLimit, long promotionLimit) {
    figure("kills", kills);
    if (kills > 0) {
      figure("least_rows_held_at_kill", leastHeldAtKill);
      figure("slots_held_at_kills", slotsHeldAtKills);
      figure("worst_slots_given_back_after_kill_s", round(worstSlotsAfterKill));
    }
    figure("limit_of_recovery_after_kill_s", killLimit);
    figure("limit_of_recovery_after_server_s", serverLimit);
    figure("worst_recovery_after_kill_s", round(worstAfterKill));
    figure("worst_recovery_after_server_s", round(worstAfterServer));
    figure("limit_of_recovery_after_promotion_s", promotionLimit);
    figure("worst_recovery_after_promotion_s", round(worstAfterPromotion));
    if (faults.containsKey(Fault.HOLD_HORIZON)) {
      figure("least_share_with_held_horizon", share(leastShareWithHeldHorizon));
    }
    if (faults.containsKey(Fault.BROKEN_DEAD_LETTERS)) {
      figure("least_healthy_share_with_broken_dead_letters", share(leastHealthyShare));
    }
    if (worstAfterPromotion > promotionLimit) {
      breach("the first message after a promotion took longer than " + promotionLimit + " s");
    }
    if (worstAfterKill > killLimit) {
      breach("rows of a killed subscriber waited longer than " + killLimit + " s");
    }
    if (worstSlotsAfterKill > killLimit) {
      breach("slots of a killed subscriber were kept longer than " + killLimit + " s");
    }
    if (worstAfterServer > serverLimit) {
      breach("the first message after the server's return took longer than " + serverLimit + " s");
    }
  }

  private static double share(double value) {
    return Math.round(value * 100) / 100.0;
  }

  void figure(String name, Object value) {
    figures.put(name, value);
  }

  /** Begins the report of a proof: what ran where. */
  void about(Server server, long seed, Duration slack) throws SQLException {
    figure("date", LocalDate.now(ZoneOffset.UTC).toString());
    figure("commit", Commit.current());
    figure("java", System.getProperty("java.runtime.version"));
    figure("postgresql", server.version());
    figure("processors", Runtime.getRuntime().availableProcessors());
    figure("seed", seed);
    figure("slack_s", slack.toSeconds());
  }

  /** A run in which nothing happened shows nothing. */
  void requireSome(String figure, long value) {
    figure(figure, value);
    if (value == 0) {
      breach(figure + " is 0, so the run shows nothing of it");
    }
  }

  /** Ends the report of a proof, and tells whether it found nothing. */
  boolean conclude() throws IOException {
    String file = Options.property("report", "");
    if (!file.isEmpty()) {
      writeFigures(Path.of(file));
    }
    print();
    return clean();
  }

  /** Notes a figure that must be zero. */
  void mustBeZero(String name, long value) {
    figure(name, value);
    if (value != 0) {
      breach(name + " is " + value);
    }
  }

  void breach(String what) {
    breaches.add(what);
    say("  BREACH: %s".formatted(what));
  }

  boolean clean() {
    return breaches.isEmpty();
  }

  /** Writes the report as JSON, and beside it for people. */
  void write(Path file) throws IOException {
    Map<String, Object> all = new LinkedHashMap<>(figures);
    Map<String, Object> byFault = new LinkedHashMap<>();
    faults.forEach(
        (fault, episodes) -> byFault.put(fault.label(), Recoveries.of(episodes).figures()));
    all.put("faults", byFault);
    all.put("evidence", evidence());
    all.put("breaches", breaches);
    new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT).writeValue(file.toFile(), all);
    String name = file.getFileName().toString();
    Files.writeString(file.resolveSibling(name.replaceFirst("(\\.json)?$", ".md")), markdown(name));
  }

  /** Writes the figures and the breaches as JSON, for a run that is not made of faults by name. */
  private void writeFigures(Path file) throws IOException {
    Map<String, Object> all = new LinkedHashMap<>(figures);
    all.put("breaches", breaches);
    new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT).writeValue(file.toFile(), all);
  }

  private String markdown(String json) {
    StringBuilder text =
        new StringBuilder(
            """
            # Report of a run of the fault harness

            Written by the run itself, as is [%s](%s). What the figures mean and how to run it:
            [the fault harness](operations/fault-harness.md).

            | figure | value |
            |---|---|
            """
                .formatted(json, json));
    figures.forEach((name, value) -> text.append(rows(name, value)));
    text.append(
        """

        | fault | times | recovered after, s: median | worst | all well after, s: median | worst |
        |---|---|---|---|---|---|
        """);
    faults.forEach((fault, episodes) -> text.append(Recoveries.of(episodes).row(fault.label())));
    text.append("\nWhat shows that each fault happened, of all times:\n\n");
    evidence()
        .forEach(
            (fault, counts) ->
                text.append(
                    "- `%s`: %s%n"
                        .formatted(
                            fault,
                            counts.entrySet().stream()
                                .map(sign -> "%s %d".formatted(sign.getKey(), sign.getValue()))
                                .collect(Collectors.joining(", ")))));
    text.append(clean() ? "\nNo breach.\n" : "\nBreaches:\n\n");
    breaches.forEach(breach -> text.append("- ").append(breach).append('\n'));
    return text.toString();
  }

  /** Rows of the table of figures, none of which is wide: a figure with parts has one for each. */
  private static String rows(String name, Object value) {
    if (!(value instanceof Map<?, ?> parts)) {
      return "| `%s` | %s |%n".formatted(name, value);
    }
    return parts.entrySet().stream()
        .map(part -> "| `%s`: %s | %s |%n".formatted(name, part.getKey(), part.getValue()))
        .collect(Collectors.joining());
  }

  /** The signs of each fault, added up. */
  private Map<String, Map<String, Long>> evidence() {
    Map<String, Map<String, Long>> all = new LinkedHashMap<>();
    faults.forEach(
        (fault, episodes) -> {
          Map<String, Long> sum = new LinkedHashMap<>();
          episodes.forEach(
              episode ->
                  episode
                      .evidence()
                      .counts()
                      .forEach((name, count) -> sum.merge(name, count, Long::sum)));
          all.put(fault.label(), sum);
        });
    return all;
  }

  void print() {
    say("%n%-46s %s".formatted("figure", "value"));
    figures.forEach((name, value) -> say("%-46s %s".formatted(name, value)));
    say(clean() ? "PASSED" : "FAILED: " + breaches);
  }

  static double round(double value) {
    return Math.round(value * 10) / 10.0;
  }

  static void say(String line) {
    System.out.println(line); // this is a command's output
  }

  /** How long the recoveries from one fault took, in seconds. */
  private record Recoveries(List<Recovery> all) {
    static Recoveries of(List<Episode> episodes) {
      return new Recoveries(episodes.stream().map(Episode::recovery).toList());
    }

    private double worst(ToDoubleFunction<Recovery> seconds) {
      return round(all.stream().mapToDouble(seconds).max().orElse(0));
    }

    private double median(ToDoubleFunction<Recovery> seconds) {
      return round(
          all.stream().mapToDouble(seconds).sorted().skip(all.size() / 2).findFirst().orElse(0));
    }

    Map<String, Object> figures() {
      Map<String, Object> figures = new LinkedHashMap<>();
      figures.put("times", all.size());
      figures.put("median_recovery_s", median(Recovery::seconds));
      figures.put("worst_recovery_s", worst(Recovery::seconds));
      figures.put("median_all_well_s", median(Recovery::allWellSeconds));
      figures.put("worst_all_well_s", worst(Recovery::allWellSeconds));
      return figures;
    }

    String row(String fault) {
      return "| `%s` | %d | %.1f | %.1f | %.1f | %.1f |%n"
          .formatted(
              fault,
              all.size(),
              median(Recovery::seconds),
              worst(Recovery::seconds),
              median(Recovery::allWellSeconds),
              worst(Recovery::allWellSeconds));
    }
  }
}
