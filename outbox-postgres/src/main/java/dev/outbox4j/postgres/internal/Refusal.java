package dev.outbox4j.postgres.internal;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.postgres.OutboxTable;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;

/**
 * Statements that refuse, by themselves, to do what they were about to do: a text that is no number
 * is cast to one, and so the statement fails and says the text.
 */
public enum Refusal {
  /** A write has changed more rows than it was asked to. */
  TOO_MANY(
      "outbox4j: more rows than asked, more than one with id ",
      Fault.ROW,
      "more rows were found than were asked for: rows share an id; see whether the outbox still has"
          + " its primary key"),

  /** A dead letter was not inserted, although that did not fail. */
  SWALLOWED(
      "outbox4j: dead letters that arrived, ",
      Fault.ROW,
      "not every dead letter arrived: look for a trigger or a rule on the dead-letter table that"
          + " drops rows"),

  /** A dead letter was not put back, although that did not fail. */
  NOT_PUT_BACK(
      "outbox4j: messages that were put back, ",
      Fault.ROW,
      "not every message came back to the outbox: look for a trigger or a rule on the outbox or on"
          + " the dead-letter table that drops rows"),

  /** The preamble's settings are not in force. */
  SPLIT(
      "outbox4j: enable_seqscan is ",
      Fault.SETUP,
      "its statements were not run in one transaction, so that its settings were lost between them:"
          + " look for what makes the driver leave the types of parameters open, such as an"
          + " instrumentation that asks for them, or for preferQueryMode or prepareThreshold of"
          + " unusual values");

  private static final String BAD_NUMBER = "22P02";

  /** A condition that is true if the preamble's settings are in force. */
  public static final String ONE_TRANSACTION =
      "cast(case when current_setting('enable_seqscan') <> 'off' then '"
          + SPLIT.words
          + "' || current_setting('enable_seqscan') end as int) is null";

  private final String words;
  private final Fault fault;
  private final String explanation;

  Refusal(String words, Fault fault, String explanation) {
    this.words = words;
    this.fault = fault;
    this.explanation = explanation;
  }

  /** {@return the words with which the server refuses} */
  public String words() {
    return words;
  }

  /** Returns the exception for a refusal, or null if the failure is none. */
  static @Nullable OutboxStoreException of(String operation, OutboxTable table, SQLException e) {
    String message = e.getMessage();
    // by its state, too: a row that is refused may say the same words
    if (!BAD_NUMBER.equals(SqlFaults.state(e)) || message == null) {
      return null;
    }
    for (Refusal refusal : values()) {
      if (message.contains(refusal.words)) {
        return new OutboxStoreException(
            operation + " on " + table + " was rolled back: " + refusal.explanation,
            refusal.fault,
            false,
            BAD_NUMBER,
            new SQLException(message.lines().findFirst().orElse(""), BAD_NUMBER));
      }
    }
    return null;
  }
}
