package dev.outbox4j.internal.settings;

import dev.outbox4j.internal.Utf8;
import java.util.List;

/** Settings with which no subscriber can be built. */
public final class SettingFaults extends IllegalStateException {
  private static final long serialVersionUID = 1;

  private final transient List<String> faults;

  /** Tells all at once. */
  public SettingFaults(String subscriber, List<String> faults) {
    super(
        "Subscriber '"
            + Utf8.bounded(subscriber, 100)
            + "' cannot be built: "
            + String.join("; ", faults));
    this.faults = List.copyOf(faults);
  }

  /** {@return each, with its remedy after the last semicolon} */
  public List<String> faults() {
    return faults;
  }
}
