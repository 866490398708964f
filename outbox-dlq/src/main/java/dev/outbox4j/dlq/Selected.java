package dev.outbox4j.dlq;

import dev.outbox4j.dlq.DeadLetterPage.Position;
import dev.outbox4j.dlq.Term.Kind;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * A filter as parts of a statement. A queue is a range of one value where an index is walked, and
 * the order begins with it: so only the index has the order that begins with the queue. Times are
 * compared together with the queue there, and places, too, since behind a range no other column is
 * a bound. Immutable.
 */
final class Selected {
  private final List<Term> terms;
  private final Map<String, Object> values = new HashMap<>();
  private final Map<Term, String> rendered = new HashMap<>();
  private final boolean keysAreRare;

  /** Renders the conditions; what a user gave is in parameters only. */
  Selected(List<Term> terms) {
    this(terms, true);
  }

  private Selected(List<Term> terms, boolean keysAreRare) {
    this.terms = List.copyOf(terms);
    this.keysAreRare = keysAreRare;
    char term = 'a';
    for (Term each : this.terms) {
      String sql = each.sql();
      char value = 'a';
      for (Object one : each.values()) {
        String name = "f_" + term + value++;
        values.put(name, one);
        sql = sql.replaceFirst("\\{v}", ":" + name);
      }
      rendered.put(each, sql);
      term++;
    }
    queue().ifPresent(queue -> values.put("of_queue", queue));
  }

  /** {@return the parameters, by their names} */
  Map<String, Object> values() {
    return values;
  }

  /** {@return the queue that it names, if it does} */
  Optional<String> queue() {
    return of(Kind.QUEUE).stream().findFirst().map(term -> (String) term.values().get(0));
  }

  /** {@return the ids that it names, of all its conditions} */
  List<long[]> ids() {
    return of(Kind.IDS).stream().map(term -> (long[]) term.values().get(0)).toList();
  }

  private boolean has(Kind kind) {
    return terms.stream().anyMatch(term -> term.kind() == kind);
  }

  private String all(List<Term> some) {
    return some.isEmpty()
        ? "true"
        : some.stream().map(rendered::get).collect(Collectors.joining(" and "));
  }

  private List<Term> of(Kind... kinds) {
    List<Kind> wanted = List.of(kinds);
    return terms.stream().filter(term -> wanted.contains(term.kind())).toList();
  }

  /** Which terms name few letters by an index of their own. */
  private List<Term> few() {
    if (has(Kind.IDS)) {
      return of(Kind.IDS);
    }
    if (has(Kind.MESSAGE)) {
      return of(Kind.MESSAGE);
    }
    return isByKey() ? of(Kind.KEY, Kind.QUEUE, Kind.UNRESOLVED) : List.of();
  }

  /** {@return whether the index on ordering keys finds the letters, few or many} */
  boolean isByKey() {
    return keysAreRare
        && !has(Kind.IDS)
        && !has(Kind.MESSAGE)
        && has(Kind.KEY)
        && has(Kind.QUEUE)
        && has(Kind.UNRESOLVED);
  }

  /** {@return whether it is of unresolved letters, which no index has in the order of a page} */
  boolean isOfAnyQueueAndUnresolved() {
    return few().isEmpty() && !has(Kind.QUEUE) && has(Kind.UNRESOLVED);
  }

  /** {@return the same, for a key with many letters: it is asked of the letters of the queue} */
  Selected notByKey() {
    return new Selected(terms, false);
  }

  /** Puts what an index names into a statement, and nothing else of the filter. */
  String named(String template) {
    return template.replace("{letters}", letters());
  }

  private String letters() {
    List<Term> few = few();
    if (few.isEmpty()) {
      return "{dead_letters} d";
    }
    String more = "";
    if (isByKey()) {
      more = " and d.ordering_key is not null";
    } else if (!has(Kind.IDS)) {
      more = " and (d.outbox = ({outbox_name})) is true";
    }
    return "(select * from {dead_letters} d where " + all(few) + more + " offset 0) d";
  }

  private String asked(List<Term> walked) {
    List<Term> few = few();
    return all(
        terms.stream().filter(term -> !walked.contains(term) && !few.contains(term)).toList());
  }

  /**
   * Where a page begins: at a place, or where letters are old enough. A walk back in time has this
   * one upper bound: of two, the server may begin at the wider one, and go through all between.
   */
  Optional<Position> start(Optional<Position> given) {
    Optional<Instant> before =
        of(Kind.BEFORE).stream()
            .map(term -> Instant.parse((String) term.values().get(0)))
            .min(Comparator.naturalOrder());
    return before
        .filter(time -> given.isEmpty() || !given.get().failedAt().isBefore(time))
        .map(time -> new Position(time, Long.MIN_VALUE))
        .or(() -> given);
  }

  /** {@return whether a letter that failed then is older than the filter says, as all behind it} */
  boolean isBehind(Instant failedAt) {
    return of(Kind.FROM).stream()
        .map(term -> Instant.parse((String) term.values().get(0)))
        .anyMatch(failedAt::isBefore);
  }

  /**
   * Puts the filter into the statement of a page, which goes back in time from a place. Of a queue
   * it may go on behind the oldest one that is meant: before PostgreSQL 18 a time does not end it.
   */
  String pageByTime(String template) {
    return isOfQueue()
        ? byTime(template, List.of("d.queue >= :of_queue"))
            .replace(
                "{after}",
                "(d.queue, d.failed_at, d.id) < (:of_queue, :at::timestamptz, :id::bigint)")
        : byTime(template, List.of(), Kind.FROM)
            .replace("{after}", "(d.failed_at, d.id) < (:at::timestamptz, :id::bigint)");
  }

  /** Puts the filter into a statement that begins at the time that bounds it, if one does. */
  String countByTime(String template) {
    List<String> bounds = new ArrayList<>();
    if (!has(Kind.FROM) || has(Kind.BEFORE)) {
      bounds.add("d.queue >= :of_queue");
    }
    if (!has(Kind.BEFORE)) {
      bounds.add("d.queue <= :of_queue");
    }
    boolean forward = has(Kind.FROM) && !has(Kind.BEFORE);
    return byTime(
        forward ? template.replace("{latest_first}", "{earliest_first}") : template,
        isOfQueue() ? bounds : List.of(),
        Kind.FROM,
        Kind.BEFORE);
  }

  /** {@return whether the index goes by queues that has their unresolved letters by time} */
  private boolean isOfQueue() {
    return few().isEmpty() && has(Kind.QUEUE) && has(Kind.UNRESOLVED);
  }

  /** By a queue's index or that of all, of which some times are bounds. */
  private String byTime(String template, List<String> boundsOfQueue, Kind... times) {
    List<Term> walked = new ArrayList<>();
    List<String> bounds = new ArrayList<>(boundsOfQueue);
    if (few().isEmpty()) {
      walked.addAll(of(times));
      walked.forEach(term -> bounds.add(isOfQueue() ? ofQueue(term) : rendered.get(term)));
    }
    if (isOfQueue()) {
      walked.addAll(of(Kind.UNRESOLVED));
      bounds.add(all(of(Kind.UNRESOLVED)));
    }
    String queue = isOfQueue() ? "d.queue{way}, " : "";
    String order = queue + "d.failed_at{way}, d.id{way}";
    return template
        .replace("{letters}", letters())
        .replace("{walked}", bounds.isEmpty() ? "true" : String.join(" and ", bounds))
        .replace("{latest_first}", order.replace("{way}", " desc"))
        .replace("{earliest_first}", order.replace("{way}", ""))
        .replace("{matches}", asked(walked));
  }

  /** A time as a bound of a queue's letters: by itself it would be none of a range of queues. */
  private String ofQueue(Term time) {
    return Objects.requireNonNull(rendered.get(time))
        .replaceFirst("^d\\.failed_at (\\S+) (.+)$", "(d.queue, d.failed_at) $1 (:of_queue, $2)");
  }

  /** Puts the filter into a statement that goes by the messages of unresolved letters. */
  String openOnes(String template) {
    String walked =
        "d.resolved_at is null"
            + " and (d.queue, d.original_id, d.id) > (:queue, :message::bigint, :id::bigint)"
            + (queue().isPresent() ? " and d.queue <= :of_queue" : "");
    return ordered(template, walked, "queue", "original_id", "id");
  }

  /** Puts the filter into a statement that goes by the messages of letters, resolved or not. */
  String allOnes(String template) {
    String walked = "(d.original_id, d.id) > (:message::bigint, :id::bigint)";
    return ordered(template, walked, "original_id", "id");
  }

  private String ordered(String template, String walked, String... columns) {
    return template
        .replace("{letters}", letters())
        .replace("{walked}", walked)
        .replace("{oldest_first}", "d." + String.join(", d.", columns))
        .replace("{last_first}", String.join(" desc, ", columns) + " desc")
        .replace("{in_order}", String.join(", ", columns))
        .replace("{matches}", asked(List.of()));
  }
}
