package dev.outbox4j.examples.chaos;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.IOException;
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

  double worstAfterKill() {
    return worstAfterKill;
  }

  double worstAfterServer() {
    return worstAfterServer;
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

  void write(Path file) throws IOException {
    Map<String, Object> byFault = new LinkedHashMap<>();
    faults.forEach(
        (fault, recoveries) ->
            byFault.put(
                fault.label(),
                Map.of(
                    "times",
                    recoveries.size(),
                    "worst_recovery_s",
                    round(recoveries.stream().mapToDouble(d -> d).max().orElse(0)))));
    figures.put("faults", byFault);
    figures.put("breaches", breaches);
    new ObjectMapper()
        .enable(SerializationFeature.INDENT_OUTPUT)
        .writeValue(file.toFile(), figures);
  }

  void print() {
    say("%n%-40s %s".formatted("figure", "value"));
    figures.forEach(
        (name, value) -> {
          if (!(value instanceof Map) && !(value instanceof List)) {
            say("%-40s %s".formatted(name, value));
          }
        });
    say(clean() ? "PASSED" : "FAILED: " + breaches);
  }

  static double round(double seconds) {
    return Math.round(seconds * 10) / 10.0;
  }

  static void say(String line) {
    System.out.println(line); // this is a command's output
  }
}
