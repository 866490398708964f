package dev.outbox4j.postgres;

import dev.outbox4j.OutboxException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Every difference that a {@link SchemaValidator} found. Immutable; fit to be shown by a health
 * endpoint.
 *
 * @param table the outbox table
 * @param faults the differences; empty if there are none
 */
public record SchemaReport(OutboxTable table, List<SchemaFault> faults) {

  /** Copies the list. */
  public SchemaReport {
    faults = List.copyOf(faults);
  }

  /** {@return true if nothing is at fault} */
  public boolean valid() {
    return faults.isEmpty();
  }

  /**
   * Refuses a schema with faults.
   *
   * @return this report
   * @throws OutboxException if there is a fault; its message lists all
   */
  public SchemaReport requireValid() {
    if (!valid()) {
      throw new OutboxException(
          "the schema of outbox '%s' has %d %s:%n%s"
              .formatted(table, faults.size(), faults.size() == 1 ? "fault" : "faults", this));
    }
    return this;
  }

  /**
   * Returns the same report with one more fault.
   *
   * @param fault the fault
   * @return the longer report
   */
  public SchemaReport with(SchemaFault fault) {
    List<SchemaFault> longer = new ArrayList<>(faults);
    longer.add(fault);
    return new SchemaReport(table, longer);
  }

  /** {@return {@code valid}, or one line for each fault} */
  @Override
  public String toString() {
    return valid()
        ? "valid"
        : faults.stream().map(SchemaFault::toString).collect(Collectors.joining("\n"));
  }
}
