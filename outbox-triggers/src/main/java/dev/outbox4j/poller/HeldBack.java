package dev.outbox4j.poller;

import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * Why rows are not handled yet: a transaction is open that may write rows before them.
 *
 * @param since since when, by the source's clock, rows wait for it at the latest
 * @param delay how long that is
 * @param process the server's process that has the transaction; empty if it is a prepared one
 * @param transaction what tells it from others: a virtual transaction id, or the name of a prepared
 *     transaction
 * @param application the application's name that its session gave, where it may be seen
 * @param began when the transaction began, where it may be seen
 * @param transactions how many transactions are waited for
 */
public record HeldBack(
    Instant since,
    Duration delay,
    OptionalInt process,
    String transaction,
    Optional<String> application,
    Optional<Instant> began,
    int transactions) {

  /** Tells it in words, for people. */
  @Override
  public String toString() {
    return "rows wait since "
        + since
        + " for "
        + (process.isPresent()
            ? "transaction " + transaction + " of process " + process.getAsInt()
            : "prepared transaction " + transaction)
        + application.map(name -> " (" + name + ")").orElse("")
        + began
            .map(time -> ", which began at " + time)
            .orElse(
                process.isPresent()
                    ? ", whose begin may not be seen without pg_read_all_stats"
                    : "")
        + (transactions > 1 ? ", and " + (transactions - 1) + " more" : "");
  }
}
