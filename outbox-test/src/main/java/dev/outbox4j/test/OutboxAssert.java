package dev.outbox4j.test;

import dev.outbox4j.FailureReason;
import dev.outbox4j.Payload;
import dev.outbox4j.spi.PayloadCodec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Assertions about one outbox, begun by {@link OutboxAssertions}. Immutable; each assertion looks
 * anew, throws an {@link AssertionError} that says what was found instead, and returns this, so
 * that others can follow.
 */
public final class OutboxAssert {
  private static final int MOST_LISTED = 20;

  private final OutboxView view;
  private final @Nullable PayloadCodec codec;

  OutboxAssert(OutboxView view, @Nullable PayloadCodec codec) {
    this.view = Objects.requireNonNull(view, "view");
    this.codec = codec;
  }

  /**
   * Sets what decodes payloads, to compare them with bodies that are neither bytes nor text. An
   * outbox in memory has one already if it publishes with one.
   *
   * @param codec the codec
   * @return assertions with that codec
   */
  public OutboxAssert codec(PayloadCodec codec) {
    return new OutboxAssert(view, Objects.requireNonNull(codec, "codec"));
  }

  /**
   * Names the dead-letter table of an outbox on PostgreSQL.
   *
   * @param table the table, beside the outbox
   * @return assertions that look there
   * @throws IllegalArgumentException if the name is not allowed
   * @throws IllegalStateException if there is no table to name, as in memory
   */
  public OutboxAssert deadLettersIn(String table) {
    return new OutboxAssert(onTable().deadLettersIn(table), codec);
  }

  /**
   * Names the dead-letter table of an outbox on PostgreSQL, and its schema.
   *
   * @param schema the schema
   * @param table the table
   * @return assertions that look there
   * @throws IllegalArgumentException if a name is not allowed
   * @throws IllegalStateException if there is no table to name, as in memory
   */
  public OutboxAssert deadLettersIn(String schema, String table) {
    return new OutboxAssert(onTable().deadLettersIn(schema, table), codec);
  }

  private TableView onTable() {
    if (view instanceof TableView onTable) {
      return onTable;
    }
    throw new IllegalStateException(
        view.name() + " has no dead-letter table to name; leave deadLettersIn(...) out");
  }

  /**
   * Says that the outbox has no dead letters, since its subscribers delete what fails for good.
   * Assertions about dead letters would look where none ever is, so they throw an {@link
   * IllegalStateException} from here on.
   *
   * @return assertions that refuse to look for dead letters
   */
  public OutboxAssert withoutDeadLetters() {
    return new OutboxAssert(new WithoutDeadLetters(view), codec);
  }

  /**
   * Asserts that a message of a type was published to a queue.
   *
   * @param queue the queue
   * @param type the message type
   * @return this
   */
  public OutboxAssert hasPublished(String queue, String type) {
    return require(queue, "a message of type '" + type + "'", ofType(type));
  }

  /**
   * Asserts that a message of a type with a body was published to a queue.
   *
   * @param queue the queue
   * @param type the message type
   * @param body the body. Bytes, {@link Payload} and text are compared with the payload; for any
   *     other the payload is decoded to its class, and the two compared by {@code equals}
   * @return this
   * @throws IllegalStateException if the body needs a codec and there is none
   */
  public OutboxAssert hasPublished(String queue, String type, Object body) {
    Objects.requireNonNull(body, "body");
    if (codec == null && Bodies.needsCodec(body)) {
      throw new IllegalStateException(
          "A body of "
              + body.getClass().getName()
              + " needs a codec and there is none; set one with codec(...), or give bytes, Payload or String");
    }
    List<RuntimeException> undecoded = new ArrayList<>();
    if (published(queue).stream()
        .filter(ofType(type))
        .anyMatch(row -> hasBody(row, body, undecoded))) {
      return this;
    }
    String shown = Bodies.needsCodec(body) ? body.toString() : Bodies.shown(bytes(body), 1_000);
    String what = "a message of type '" + type + "' with the body " + shown;
    throw withSuppressed(notPublished(queue, what) + undecoded(undecoded), undecoded);
  }

  private static String undecoded(List<RuntimeException> failures) {
    return failures.isEmpty()
        ? ""
        : "\nof that type %d could not be decoded, the first by: %s"
            .formatted(failures.size(), failures.get(0));
  }

  /**
   * Asserts that a message was published to a queue which fulfils some requirements.
   *
   * @param queue the queue
   * @param requirements throws an {@link AssertionError}, or a {@link RuntimeException} such as
   *     that of a payload which cannot be decoded, for a message that does not fulfil them
   * @return this
   */
  public OutboxAssert hasPublished(String queue, Consumer<? super OutboxRow> requirements) {
    Objects.requireNonNull(requirements, "requirements");
    List<Throwable> unmet = new ArrayList<>();
    for (OutboxRow row : published(queue)) {
      try {
        requirements.accept(row);
        return this;
      } catch (AssertionError | RuntimeException notThisOne) {
        unmet.add(notThisOne);
      }
    }
    throw withSuppressed(notPublished(queue, "a message that fulfils the requirements"), unmet);
  }

  private static AssertionError withSuppressed(String text, List<? extends Throwable> causes) {
    AssertionError failure = new AssertionError(text);
    causes.forEach(failure::addSuppressed);
    return failure;
  }

  /**
   * Asserts that so many messages were published to a queue.
   *
   * @param queue the queue
   * @param count how many, 0 or more
   * @return this
   */
  public OutboxAssert hasPublishedExactly(String queue, int count) {
    if (count < 0) {
      throw new IllegalArgumentException("count is " + count + "; it must be 0 or more");
    }
    int found = published(queue).size();
    if (found != count) {
      throw new AssertionError(notPublished(queue, count + " message(s)"));
    }
    return this;
  }

  /**
   * Asserts that no message of a type was published to a queue.
   *
   * @param queue the queue
   * @param type the message type
   * @return this
   */
  public OutboxAssert hasNotPublished(String queue, String type) {
    return refuse(
        "no message of type '" + type + "' in queue '" + queue + "'",
        published(queue).stream().filter(ofType(type)).toList());
  }

  /**
   * Asserts that nothing was published to a queue.
   *
   * @param queue the queue
   * @return this
   */
  public OutboxAssert hasPublishedNothing(String queue) {
    return refuse("nothing in queue '" + queue + "'", published(queue));
  }

  /**
   * Asserts that nothing was published to any queue.
   *
   * @return this
   */
  public OutboxAssert hasPublishedNothing() {
    return refuse("nothing in any queue", view.published(codec));
  }

  /**
   * Asserts that a message of a queue failed for good, for a reason.
   *
   * @param queue the queue
   * @param type the message type
   * @param reason why
   * @return this
   */
  public OutboxAssert hasDeadLetter(String queue, String type, FailureReason reason) {
    List<DeadLetter> found = view.deadLettered(queue, codec);
    if (found.stream()
        .noneMatch(dead -> ofType(type).test(dead.row()) && dead.reason() == reason)) {
      throw new AssertionError(
          "%s should have a dead letter of type '%s' of queue '%s' for the reason %s; it has %s"
              .formatted(view.name(), type, queue, reason, listed(found)));
    }
    return this;
  }

  /**
   * Asserts that no message of a queue failed for good.
   *
   * @param queue the queue
   * @return this
   */
  public OutboxAssert hasNoDeadLetters(String queue) {
    List<DeadLetter> found = view.deadLettered(queue, codec);
    if (!found.isEmpty()) {
      throw new AssertionError(
          "%s should have no dead letters of queue '%s'; it has %s"
              .formatted(view.name(), queue, listed(found)));
    }
    return this;
  }

  /**
   * Asserts that nothing of a queue is due: all that was has been handled, dead-lettered, or waits
   * for a retry. {@link #isEmpty} does not take a message that waits for one handled.
   *
   * @param queue the queue
   * @return this
   */
  public OutboxAssert isDrained(String queue) {
    List<OutboxRow> due = view.due(queue, codec);
    if (!due.isEmpty()) {
      throw new AssertionError(
          "%s should have nothing that is due in queue '%s'; it has %s"
              .formatted(view.name(), queue, listed(due)));
    }
    return this;
  }

  /**
   * Waits until nothing of a queue is due, while a subscriber handles it. A message whose handler
   * failed, and which waits for its retry, is not due; so a test that means "handled" wants {@link
   * #awaitEmpty}.
   *
   * @param queue the queue
   * @param limit how long to wait
   * @return this
   * @throws AssertionError if something is still due then; it says what
   */
  public OutboxAssert awaitDrained(String queue, Duration limit) {
    Poll.until(
        () -> view.due(queue, codec).isEmpty(),
        limit,
        () ->
            "%s should have nothing that is due in queue '%s' after %s; it has %s"
                .formatted(view.name(), queue, limit, listed(view.due(queue, codec))));
    return this;
  }

  /**
   * Asserts that no message of a queue is left: neither due, delayed, nor waiting for a retry. All
   * that were have been handled, or failed for good.
   *
   * @param queue the queue
   * @return this
   */
  public OutboxAssert isEmpty(String queue) {
    List<OutboxRow> left = view.waiting(queue, codec);
    if (!left.isEmpty()) {
      throw new AssertionError(notEmpty(queue, "", left));
    }
    return this;
  }

  /**
   * Waits until no message of a queue is left: neither due, delayed, nor waiting for a retry, while
   * a subscriber handles it. What failed for good has left it as well, so {@link #hasNoDeadLetters}
   * is what to ask next.
   *
   * @param queue the queue
   * @param limit how long to wait
   * @return this
   * @throws AssertionError if something is left then; it says what, with its last error
   */
  public OutboxAssert awaitEmpty(String queue, Duration limit) {
    Poll.until(
        () -> view.waiting(queue, codec).isEmpty(),
        limit,
        () -> notEmpty(queue, " after " + limit, view.waiting(queue, codec)));
    return this;
  }

  private String notEmpty(String queue, String when, List<OutboxRow> left) {
    return "%s should have no message left in queue '%s'%s, neither due, delayed, nor waiting for a retry; it has %s"
        .formatted(view.name(), queue, when, listed(left));
  }

  /**
   * Returns what was published to a queue, as these assertions see it.
   *
   * @param queue the queue
   * @return the rows, in the order of their ids
   */
  public List<OutboxRow> published(String queue) {
    Objects.requireNonNull(queue, "queue");
    return view.published(codec).stream().filter(row -> row.queue().equals(queue)).toList();
  }

  /**
   * Returns what of a queue failed for good.
   *
   * @param queue the queue
   * @return the dead letters, oldest first
   */
  public List<DeadLetter> deadLettered(String queue) {
    return view.deadLettered(Objects.requireNonNull(queue, "queue"), codec);
  }

  private OutboxAssert require(String queue, String what, Predicate<OutboxRow> wanted) {
    if (published(queue).stream().noneMatch(wanted)) {
      throw new AssertionError(notPublished(queue, what));
    }
    return this;
  }

  private OutboxAssert refuse(String what, List<OutboxRow> found) {
    if (!found.isEmpty()) {
      throw new AssertionError(
          "%s should have %s; it has %s".formatted(view.name(), what, listed(found)));
    }
    return this;
  }

  private String notPublished(String queue, String what) {
    List<OutboxRow> all = view.published(codec);
    List<OutboxRow> here = all.stream().filter(row -> row.queue().equals(queue)).toList();
    String elsewhere =
        here.isEmpty() && !all.isEmpty() ? "; in other queues it has " + listed(all) : "";
    return "%s should have %s in queue '%s'; there it has %s%s"
        .formatted(view.name(), what, queue, listed(here), elsewhere);
  }

  private static Predicate<OutboxRow> ofType(String type) {
    Objects.requireNonNull(type, "type");
    return row -> row.type().filter(type::equals).isPresent();
  }

  private static Payload bytes(Object body) {
    return Bodies.encode(body, null);
  }

  private static boolean hasBody(OutboxRow row, Object body, List<RuntimeException> undecoded) {
    if (!Bodies.needsCodec(body)) {
      return row.payload().equals(bytes(body));
    }
    try {
      return body.equals(row.body(body.getClass()));
    } catch (RuntimeException notOfThatClass) {
      undecoded.add(notOfThatClass);
      return false;
    }
  }

  private static String listed(List<?> found) {
    if (found.isEmpty()) {
      return "nothing";
    }
    StringBuilder text = new StringBuilder().append(found.size()).append(':');
    found.stream().limit(MOST_LISTED).forEach(each -> text.append("\n  ").append(each));
    if (found.size() > MOST_LISTED) {
      text.append("\n  and ").append(found.size() - MOST_LISTED).append(" more");
    }
    return text.toString();
  }
}
