package dev.outbox4j.spring;

import dev.outbox4j.internal.settings.SettingFaults;
import java.util.List;
import java.util.stream.Collectors;

/** Says why a queue's subscriber cannot be built: of properties, beans and handler methods. */
final class BuildRefusal {
  private static final String NO_CODEC = "but there is no codec(...); set one, or take ";

  private final String queue;
  private final List<HandlerMethod> handlers;
  private final SubscriberSettings settings;

  BuildRefusal(String queue, List<HandlerMethod> handlers, SubscriberSettings settings) {
    this.queue = queue;
    this.handlers = handlers;
    this.settings = settings;
  }

  /** One line, or one for each fault after the first line. */
  String of(SettingFaults refusal) {
    List<String> faults = refusal.faults().stream().map(this::words).toList();
    String start = "The subscriber of queue '" + queue + "' cannot be built";
    return faults.size() == 1
        ? start + ": " + faults.get(0)
        : start + ", for " + faults.size() + " reasons:\n" + String.join("\n", faults);
  }

  private String words(String fault) {
    return fault.contains(NO_CODEC)
        ? noCodec(fault)
        : settings
            .inProperties(fault)
            .replace(
                "deadLetters(DeadLetterQueue.in(...))", "outbox4j.delete-terminal-failures=false")
            .replace(
                "deadLetters(...) and deleteTerminalFailures() are both set; set one of them",
                "outbox4j.delete-terminal-failures and an OutboxSubscriberCustomizer differ about"
                    + " messages that fail for good; set the property alone");
  }

  private String noCodec(String fault) {
    String methods =
        handlers.stream()
            .filter(
                handler ->
                    handler.types().stream().anyMatch(t -> fault.startsWith("type '" + t + "'")))
            .map(HandlerMethod::toString)
            .collect(Collectors.joining(", "));
    return methods
        + ": "
        + fault.replace(
            NO_CODEC,
            "but there is no PayloadCodec, and not one JSON mapper to make it of; add Spring Boot's"
                + " Jackson starter, mark one mapper of several with @Primary, or declare a"
                + " PayloadCodec bean, or take ");
  }
}
