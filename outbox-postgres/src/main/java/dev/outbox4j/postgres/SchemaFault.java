package dev.outbox4j.postgres;

import java.util.Objects;

/**
 * One difference between the live database and what the code needs. Holds names and definitions
 * only: no data, no credentials, no address of a server.
 *
 * @param object what is at fault, such as {@code column public.outbox.queue}
 * @param expected what the code needs
 * @param found what there is
 * @param remedy what to do, a statement where one will do
 */
public record SchemaFault(String object, String expected, String found, String remedy) {

  /** Checks that nothing is null. */
  public SchemaFault {
    Objects.requireNonNull(object, "object");
    Objects.requireNonNull(expected, "expected");
    Objects.requireNonNull(found, "found");
    Objects.requireNonNull(remedy, "remedy");
  }

  /** {@return the fault on one line} */
  @Override
  public String toString() {
    return "%s: expected %s, found %s; to fix it: %s".formatted(object, expected, found, remedy);
  }
}
