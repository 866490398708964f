package dev.outbox4j.dlq;

import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxMessage;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;

/**
 * Which dead letters are meant: those that meet every condition. A filter that says nothing of
 * resolution means the unresolved ones. Immutable.
 *
 * <p>An index serves {@link #queue} of unresolved letters, {@link #orderingKey} of a queue's
 * unresolved ones (if they are 2,000 at most), {@link #ids}, {@link #messageId}, {@link
 * #failedFrom} and {@link #failedBefore}. Every other condition is asked of the letters that these
 * leave, one after the other. That is so of pages and counts. What is done to letters asks all
 * conditions of every unresolved letter of the queue, or of the outbox if no queue is named, and a
 * purge of every letter.
 */
public final class DeadLetterFilter {
  /** The first instant that a filter may name. */
  static final Instant FIRST = Instant.parse("0001-01-01T00:00:00Z");

  /** The last one. */
  static final Instant LAST = Instant.parse("9999-12-31T23:59:59Z");

  private static final int MOST_TERMS = 25;
  private static final int MOST_TEXT_BYTES = 1_024;
  private static final int MOST_IDS = 10_000;

  private final List<Term> terms;

  private DeadLetterFilter(List<Term> terms) {
    this.terms = List.copyOf(terms);
  }

  private static DeadLetterFilter of(Term term) {
    return new DeadLetterFilter(List.of(term));
  }

  /** {@return every unresolved letter} */
  public static DeadLetterFilter unresolved() {
    return of(new Term(Term.Kind.UNRESOLVED, "unresolved", "d.resolved_at is null", List.of()));
  }

  /** {@return letters that were put back or discarded, or resolved by hand} */
  public static DeadLetterFilter resolved() {
    return of(new Term(Term.Kind.RESOLVED, "resolved", "d.resolved_at is not null", List.of()));
  }

  /** {@return letters that were put back, and whose messages have not failed again since} */
  public static DeadLetterFilter redriven() {
    String[] resolutions = {Words.REDRIVEN, Words.EDITED};
    return resolvedAs("redriven", "d.resolution = any ({v}::text[])", resolutions);
  }

  /** {@return letters that were discarded} */
  public static DeadLetterFilter discarded() {
    return resolvedAs("discarded", "starts_with(d.resolution, {v})", Words.DISCARDED);
  }

  private static DeadLetterFilter resolvedAs(String words, String condition, Object value) {
    String sql = "d.resolved_at is not null and " + condition;
    return of(new Term(Term.Kind.RESOLVED, words, sql, List.of(value)));
  }

  /** {@return letters whether they are resolved or not} */
  public static DeadLetterFilter any() {
    return of(new Term(Term.Kind.ANY, "resolved or not", "true", List.of()));
  }

  /**
   * Letters of a queue. Queues are not declared, so there may be none of a name.
   *
   * @param queue its name
   * @return the filter
   * @throws IllegalArgumentException if no message can have the name
   */
  public static DeadLetterFilter queue(String queue) {
    OutboxMessage.to(queue); // the rules for names
    return of(new Term(Term.Kind.QUEUE, "queue " + queue, "d.queue = {v}", List.of(queue)));
  }

  /**
   * Letters of a type.
   *
   * @param type of their messages
   * @return the filter
   * @throws IllegalArgumentException if no message can have it
   */
  public static DeadLetterFilter type(String type) {
    OutboxMessage.to("any").type(type);
    return of(new Term(Term.Kind.OTHER, "type " + type, "d.type = {v}", List.of(type)));
  }

  /**
   * Letters that failed for one of some reasons.
   *
   * @param reasons at least one
   * @return the filter
   * @throws IllegalArgumentException if there is none
   */
  public static DeadLetterFilter reason(FailureReason... reasons) {
    if (reasons.length == 0) {
      throw new IllegalArgumentException("There is no reason; give one or more");
    }
    String[] codes = Arrays.stream(reasons).map(FailureReason::code).toArray(String[]::new);
    return of(
        new Term(
            Term.Kind.OTHER,
            "reason " + String.join(" or ", codes),
            "d.failure_reason = any ({v}::text[])",
            List.of((Object) codes)));
  }

  /**
   * Letters whose last exception has a text somewhere.
   *
   * @param text as it is stored; upper and lower case differ
   * @return the filter
   * @throws IllegalArgumentException if it is empty, has a NUL, or has more than 1,024 bytes in
   *     UTF-8
   */
  public static DeadLetterFilter exceptionContains(String text) {
    return of(
        new Term(
            Term.Kind.OTHER,
            "exception with '" + text + "'",
            "position({v} in d.last_exception) > 0",
            List.of(requireText("text", text))));
  }

  /**
   * Letters that failed at an instant or later.
   *
   * @param instant by the server's clock, of the years 1 to 9999
   * @return the filter
   * @throws IllegalArgumentException if it is of another year
   */
  public static DeadLetterFilter failedFrom(Instant instant) {
    return ofTime(Term.Kind.FROM, "failed from ", "d.failed_at >=", instant);
  }

  /**
   * Letters that failed before an instant.
   *
   * @param instant by the server's clock, of the years 1 to 9999
   * @return the filter
   * @throws IllegalArgumentException if it is of another year
   */
  public static DeadLetterFilter failedBefore(Instant instant) {
    return ofTime(Term.Kind.BEFORE, "failed before ", "d.failed_at <", instant);
  }

  /**
   * Letters that were resolved before an instant: those that were redriven or discarded so long
   * ago.
   *
   * @param instant by the server's clock, of the years 1 to 9999
   * @return the filter
   * @throws IllegalArgumentException if it is of another year
   */
  public static DeadLetterFilter resolvedBefore(Instant instant) {
    return ofTime(Term.Kind.RESOLVED, "resolved before ", "d.resolved_at <", instant);
  }

  /**
   * Letters of an ordering key.
   *
   * @param key of their messages
   * @return the filter
   * @throws IllegalArgumentException if no message can have it
   */
  public static DeadLetterFilter orderingKey(String key) {
    OutboxMessage.to("any").orderingKey(key);
    return of(new Term(Term.Kind.KEY, "ordering key " + key, "d.ordering_key = {v}", List.of(key)));
  }

  /**
   * Letters with a header of a value.
   *
   * @param name the header
   * @param value its value
   * @return the filter
   * @throws IllegalArgumentException if one is empty, has a NUL, or has more than 1,024 bytes in
   *     UTF-8
   */
  public static DeadLetterFilter header(String name, String value) {
    return of(
        new Term(
            Term.Kind.OTHER,
            "header " + name + "=" + value,
            "d.headers ->> {v} = {v}",
            List.of(requireText("name", name), requireText("value", value))));
  }

  /**
   * Single letters.
   *
   * @param ids their own ids, 1 to 10,000 of them
   * @return the filter
   * @throws IllegalArgumentException if there is none, or too many
   */
  public static DeadLetterFilter ids(long... ids) {
    if (ids.length == 0 || ids.length > MOST_IDS) {
      throw new IllegalArgumentException("There are " + ids.length + " ids; give 1 to " + MOST_IDS);
    }
    return of(
        new Term(
            Term.Kind.IDS,
            "id "
                + Arrays.stream(ids)
                    .limit(20)
                    .mapToObj(String::valueOf)
                    .collect(Collectors.joining(", "))
                + (ids.length > 20 ? ", ... (" + ids.length + ")" : ""),
            "d.id = any ({v}::bigint[])",
            List.of((Object) ids.clone())));
  }

  /**
   * The letter of a message.
   *
   * @param messageId the id that the message had in the outbox, as the log tells it
   * @return the filter
   */
  public static DeadLetterFilter messageId(long messageId) {
    return of(
        new Term(
            Term.Kind.MESSAGE, "message " + messageId, "d.original_id = {v}", List.of(messageId)));
  }

  /**
   * Letters that meet another filter, too.
   *
   * @param other the other
   * @return both
   * @throws IllegalArgumentException if they have more than 25 conditions together
   */
  public DeadLetterFilter and(DeadLetterFilter other) {
    List<Term> both = new ArrayList<>(terms);
    both.addAll(other.terms);
    if (both.size() > MOST_TERMS) {
      throw new IllegalArgumentException(
          "The filter has %d conditions; it may have %d".formatted(both.size(), MOST_TERMS));
    }
    return new DeadLetterFilter(both);
  }

  /** The same, and if it says nothing of resolution, what another says. */
  DeadLetterFilter otherwise(DeadLetterFilter resolution) {
    boolean saysIt = terms.stream().anyMatch(term -> term.kind().isOfResolution());
    if (saysIt) {
      return this;
    }
    List<Term> all = new ArrayList<>(resolution.terms);
    all.addAll(terms); // one more than a user may give
    return new DeadLetterFilter(all);
  }

  List<Term> terms() {
    return terms;
  }

  private static DeadLetterFilter ofTime(
      Term.Kind kind, String words, String comparison, Instant instant) {
    if (instant.isBefore(FIRST) || instant.isAfter(LAST)) {
      throw new IllegalArgumentException(
          "instant is " + instant + "; it must be of the years 1 to 9999");
    }
    return of(
        new Term(
            kind, words + instant, comparison + " {v}::timestamptz", List.of(instant.toString())));
  }

  private static String requireText(String what, String text) {
    Objects.requireNonNull(text, what);
    if (text.isEmpty() || text.indexOf('\0') >= 0) {
      throw new IllegalArgumentException(what + " is empty or has a NUL; say what to look for");
    }
    return Words.requireShort(what, text, MOST_TEXT_BYTES);
  }

  /** {@return the conditions in words, as the audit has them} */
  @Override
  public String toString() {
    return terms.stream().map(Term::words).collect(Collectors.joining(", "));
  }
}
