package dev.outbox4j.examples.chaos;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * What a run is asked to do, from system properties. A blank one counts as not given.
 *
 * @param seconds for how long faults are begun
 * @param rate messages committed a second
 * @param faults which ones
 * @param shams which of them are not done, so that it shows whether the run notices
 * @param once whether each fault is done once, however long that takes
 * @param seed fixes their order and victims
 * @param slack what bounds on time are stretched by, for machines that are busy with other things
 * @param pooler what goes through PgBouncer: {@code half} of the processes, or {@code none}
 * @param clocks {@code skewed} for two of the subscribers, or {@code true}
 * @param volume {@code tmpfs} for one that can be filled, or {@code none}
 * @param messages how many must be committed at least
 * @param report where the figures go, if anywhere
 */
record Options(
    long seconds,
    int rate,
    List<Fault> faults,
    Set<Fault> shams,
    boolean once,
    long seed,
    Duration slack,
    String pooler,
    String clocks,
    String volume,
    long messages,
    Optional<Path> report) {

  static Options given() {
    return new Options(
        Long.parseLong(property("seconds", "60")),
        Integer.parseInt(property("rate", "1000")),
        faults(property("faults", "all")),
        Set.copyOf(faults(property("sham", "none"))),
        Boolean.parseBoolean(property("once", "false")),
        Long.parseLong(property("seed", Long.toString(System.nanoTime()))),
        Duration.ofSeconds(Long.parseLong(property("slack", "0"))),
        oneOf("pooler", "half", "none"),
        oneOf("clocks", "skewed", "true"),
        oneOf("volume", "tmpfs", "none"),
        Long.parseLong(property("messages", "0")),
        Optional.of(property("report", "")).filter(name -> !name.isEmpty()).map(Path::of));
  }

  /** The figures of long runs are for the record; the short ones must be short. */
  boolean isLong() {
    return seconds >= 600;
  }

  private static List<Fault> faults(String names) {
    return switch (names) {
      case "all" -> List.of(Fault.values());
      case "none" -> List.of();
      default -> Arrays.stream(names.split(",")).map(Fault::named).toList();
    };
  }

  private static String oneOf(String name, String usual, String other) {
    String value = property(name, usual);
    if (!value.equals(usual) && !value.equals(other)) {
      throw new IllegalArgumentException(
          "chaos." + name + " is '" + value + "'; it must be " + usual + " or " + other);
    }
    return value;
  }

  /** What is given of an option; a blank one counts as not given. */
  static String property(String name, String usual) {
    String value = System.getProperty("chaos." + name, "").strip();
    return value.isEmpty() ? usual : value;
  }
}
