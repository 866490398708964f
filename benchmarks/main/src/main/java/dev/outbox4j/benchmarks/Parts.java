package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.util.List;

/** What several processes of one contestant measured, taken together. */
final class Parts {
  private Parts() {}

  /** Their messages, and what these cost: on average, and in the process that had the most heap. */
  static Numbers costs(List<Numbers> parts) {
    double messages = sum(parts, "messages");
    Numbers costs = new Numbers().with("messages", messages);
    for (String metric :
        List.of("cpu_us_per_message", "statements_per_message", "round_trips_per_message")) {
      costs.with(
          metric,
          parts.stream().mapToDouble(p -> value(p, metric) * value(p, "messages")).sum()
              / Math.max(1, messages));
    }
    return costs.with("heap_peak_mib", max(parts, "heap_peak_mib"));
  }

  static double sum(List<Numbers> parts, String metric) {
    return parts.stream().mapToDouble(part -> value(part, metric)).sum();
  }

  static double max(List<Numbers> parts, String metric) {
    return parts.stream().mapToDouble(part -> value(part, metric)).max().orElse(0);
  }

  static double value(Numbers numbers, String metric) {
    return numbers.values().getOrDefault(metric, 0.0);
  }
}
