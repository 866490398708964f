package dev.outbox4j.benchmarks;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/** What a run is told by system properties; each has the full run's value by default. */
final class Settings {
  /** All but where and which lanes. */
  static final List<String> CHANGING =
      List.of(
          "rows",
          "payload",
          "processes",
          "rounds",
          "messages",
          "around",
          "seconds",
          "hold",
          "contestants",
          "max.seconds",
          "peer.seconds",
          "peer.warmup.seconds",
          "drain.seconds",
          "warmup.seconds",
          "rates",
          "timers",
          "subscribers",
          "dead",
          "parts",
          "baseline",
          "writers",
          "commit_delay",
          "shared_buffers",
          "server",
          "url",
          "heap",
          "jvm");

  private static final int ROUNDS = 5;

  /** What a comparison is asked for by. */
  private static final List<String> OF_COMPARISON = List.of("baseline", "parts", "rounds");

  private Settings() {}

  /** The lanes to run. */
  static List<String> lanes() {
    return list("lane", "all");
  }

  /** Rounds of each lane. */
  static int rounds() {
    return Integer.getInteger("rounds", ROUNDS);
  }

  /** Whether a size or a setting was given: then the figures are not the full run's. */
  static boolean shrunk() {
    return CHANGING.stream().anyMatch(Settings::given);
  }

  /** Whether anything was given but which builds are compared, by what, and in more rounds. */
  static boolean changesComparison() {
    return CHANGING.stream().filter(name -> !OF_COMPARISON.contains(name)).anyMatch(Settings::given)
        || rounds() < ROUNDS;
  }

  /** Whether a property was given. */
  static boolean given(String name) {
    return !text(name, "").isEmpty();
  }

  static String text(String name, String fallback) {
    String value = System.getProperty(name, "");
    return value.isBlank() ? fallback : value.trim();
  }

  static int number(String name, int fallback) {
    return Integer.parseInt(text(name, Integer.toString(fallback)));
  }

  static List<String> list(String name, String fallback) {
    return Arrays.stream(text(name, fallback).split(",", -1)).map(String::trim).toList();
  }

  static List<Integer> numbers(String name, String fallback) {
    return list(name, fallback).stream().map(Settings::parse).toList();
  }

  private static int parse(String text) {
    String digits = text.replace("_", "");
    if (digits.endsWith("k")) {
      return Integer.parseInt(digits.substring(0, digits.length() - 1)) * 1000;
    }
    if (digits.endsWith("m")) {
      return Integer.parseInt(digits.substring(0, digits.length() - 1)) * 1_000_000;
    }
    return Integer.parseInt(digits);
  }

  /** The folder of the benchmark modules. */
  static Path home() {
    return Path.of(text("benchmarks.home", "benchmarks")).toAbsolutePath().normalize();
  }

  /** Where a lane's figures go: the documentation if nothing is amiss, else the build folder. */
  static Path out(boolean amiss) {
    String given = text("out", "");
    if (!given.isEmpty()) {
      return Path.of(given);
    }
    return amiss
        ? home().resolve("target/benchmarks.json")
        : home().resolveSibling("docs").resolve("benchmarks.json");
  }

  /**
   * Where the figures of a comparison go: the documentation if it is whole, else the build folder.
   */
  static Path comparison(boolean amiss) {
    Path folder = amiss ? home().resolve("target") : home().resolveSibling("docs");
    return folder.resolve("compare.json");
  }
}
