package dev.outbox4j.examples.chaos;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What a run found. */
final class Report {
  private final Map<Fault, List<Double>> faults = new EnumMap<>(Fault.class);
  private final List<String> breaches = new ArrayList<>();
  private final Map<String, Object> figures = new LinkedHashMap<>();
  private double worstAfterKill;
  private double worstAfterServer;
  private double leastHealthyShare = 1;

  void fault(Fault fault, double recovery, double whole) {
    faults.computeIfAbsent(fault, any -> new ArrayList<>()).add(recovery);
    say(
        "  %-22s recovered after %5.1f s (episode %5.1f s)"
            .formatted(fault.label(), recovery, whole));
  }

  void recoveryAfterKill(double seconds) {
    worstAfterKill = Math.max(worstAfterKill, seconds);
  }

  void recoveryAfterServer(double seconds) {
    worstAfterServer = Math.max(worstAfterServer, seconds);
  }

  /** Notes the rate of healthy messages while dead letters were broken, as a share of the usual. */
  void healthyShare(double share) {
    leastHealthyShare = Math.min(leastHealthyShare, share);
  }

  /** Adds the figures that were gathered fault by fault, and holds them to their bounds. */
  void judgeRecoveries(long killLimit, long serverLimit) {
    figure("worst_recovery_after_kill_s", round(worstAfterKill));
    figure("worst_recovery_after_server_s", round(worstAfterServer));
    if (faults.containsKey(Fault.BROKEN_DEAD_LETTERS)) {
      figure(
          "least_healthy_share_with_broken_dead_letters",
          Math.round(leastHealthyShare * 100) / 100.0);
    }
    if (worstAfterKill > killLimit) {
      breach("rows of a killed subscriber waited longer than " + killLimit + " s");
    }
    if (worstAfterServer > serverLimit) {
      breach("the first message after the server's return took longer than " + serverLimit + " s");
    }
  }

  void figure(String name, Object value) {
    figures.put(name, value);
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
        (fault, recoveries) -> byFault.put(fault.label(), new Recoveries(recoveries).figures()));
    all.put("faults", byFault);
    all.put("breaches", breaches);
    new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT).writeValue(file.toFile(), all);
    String name = file.getFileName().toString();
    Files.writeString(file.resolveSibling(name.replaceFirst("(\\.json)?$", ".md")), markdown(name));
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
    figures.forEach((name, value) -> text.append("| `%s` | %s |%n".formatted(name, value)));
    text.append(
        """

        | fault | times | median recovery, s | worst recovery, s |
        |---|---|---|---|
        """);
    faults.forEach(
        (fault, recoveries) -> {
          Recoveries all = new Recoveries(recoveries);
          text.append(
              "| `%s` | %d | %.1f | %.1f |%n"
                  .formatted(fault.label(), recoveries.size(), all.median(), all.worst()));
        });
    text.append(clean() ? "\nNo breach.\n" : "\nBreaches:\n\n");
    breaches.forEach(breach -> text.append("- ").append(breach).append('\n'));
    return text.toString();
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
  private record Recoveries(List<Double> seconds) {
    double worst() {
      return seconds.stream().mapToDouble(each -> each).max().orElse(0);
    }

    double median() {
      return seconds.stream().sorted().skip(seconds.size() / 2).findFirst().orElse(0.0);
    }

    Map<String, Object> figures() {
      Map<String, Object> figures = new LinkedHashMap<>();
      figures.put("times", seconds.size());
      figures.put("median_recovery_s", round(median()));
      figures.put("worst_recovery_s", round(worst()));
      return figures;
    }
  }
}
