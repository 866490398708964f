package dev.outbox4j.monitor;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.internal.OneLine;
import dev.outbox4j.monitor.internal.InstanceQuery;
import dev.outbox4j.monitor.internal.InstanceStore;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.triggers.internal.Applications;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Starts the monitors of an application, looks at them, and does to them what people do: from any
 * process, also while no node runs. Each call is one transaction. Immutable and thread-safe.
 *
 * <p>An id that no instance can have is an {@link IllegalArgumentException}, and so is a text that
 * is too long or no JSON. All methods throw {@link OutboxStoreException} if a statement fails, also
 * if the instance's row is locked by somebody else for longer than two seconds.
 *
 * <p>Where {@link OutboxStoreException#outcomeUnknown()} says that the answer was lost, the call
 * may have been done. {@link #get} tells it of {@code suspend}, {@code resume}, {@code terminate}
 * and {@code purge} by the status, and of {@code restart} and a start with an id of the caller's by
 * the execution. It does not tell it of these:
 *
 * <ul>
 *   <li>a start with a random id, which nobody knows: try again, and there may be two instances;
 *   <li>{@code raiseEvent}: {@link #history} has the event, as long as it keeps it. Raised again,
 *       it is there twice, so let it bring something by which a check knows it;
 *   <li>{@code wake}: to ask for it again costs a check at most.
 * </ul>
 */
public final class MonitorControl {
  /** How many events of an instance may wait to be seen: {@value}. */
  public static final int MAX_UNSEEN_EVENTS = 100;

  private static final int MOST_ENTRIES = 10_000;
  private static final int MOST_REASON_BYTES = 2_000;
  private static final Duration SHORTEST_INTERVAL = Duration.ofMillis(10);
  private static final Duration LONGEST_WAIT = Duration.ofDays(1);

  private final PostgresOutbox outbox;
  private final String application;
  private final String queue;
  private final Values values;
  private final InstanceStore store;

  private MonitorControl(
      PostgresOutbox outbox, String application, String queue, @Nullable PayloadCodec codec) {
    this.outbox = outbox;
    this.application = application;
    this.queue = queue;
    this.values = new Values(codec);
    this.store = new InstanceStore(outbox, application, queue);
  }

  /**
   * Returns the control of an application's monitors; does no I/O.
   *
   * @param outbox where they are on record
   * @param application whose monitors
   * @return the control; without a codec it takes values as {@link Json} only
   * @throws IllegalArgumentException if no application can have the name
   */
  public static MonitorControl of(PostgresOutbox outbox, String application) {
    Objects.requireNonNull(outbox, "outbox");
    return new MonitorControl(
        outbox, Applications.require(application), Monitors.queueOf(application), null);
  }

  /**
   * Sets what encodes inputs and what events bring.
   *
   * @param codec a codec that writes JSON; should be that of the monitors
   * @return a control with it
   */
  public MonitorControl codec(PayloadCodec codec) {
    return new MonitorControl(outbox, application, queue, Objects.requireNonNull(codec, "codec"));
  }

  /**
   * Names the queue of the wakes, if the monitors have another one.
   *
   * @param queue as {@link Monitors.Builder#queue} was given; default {@code
   *     monitors.<application>}
   * @return a control with it
   * @throws IllegalArgumentException if no queue can have the name
   */
  public MonitorControl queue(String queue) {
    return new MonitorControl(outbox, application, Monitors.requireQueue(queue), values.codec());
  }

  /** {@return whose monitors these are} */
  public String application() {
    return application;
  }

  /**
   * Starts an instance with a random id. If the answer is lost, whether there is one, and by which
   * id, nobody knows; where that matters, give one that you have made.
   *
   * @param type its type
   * @param input its input
   * @param <I> the type of the input
   * @return what became of it
   */
  public <I> StartedMonitor start(MonitorType<I> type, I input) {
    return start(MonitorStart.of(type, input));
  }

  /**
   * Starts an instance.
   *
   * @param type its type
   * @param id its id
   * @param input its input
   * @param <I> the type of the input
   * @return what became of it: an id whose instance has not ended is refused, one that has is
   *     replaced, with its history and its events
   */
  public <I> StartedMonitor start(MonitorType<I> type, String id, I input) {
    return start(MonitorStart.of(type, input).id(id));
  }

  /**
   * Starts an instance.
   *
   * @param start what is to be started
   * @return what became of it: an id whose instance has not ended is refused, one that has is
   *     replaced, with its history and its events
   * @throws IllegalArgumentException if the input is too large or no JSON, or this has a codec and
   *     the input is not of the type's
   * @throws IllegalStateException if the input is no {@link Json} and this has no codec
   */
  public StartedMonitor start(MonitorStart start) {
    return store.start(stored(start));
  }

  /**
   * Starts an instance in the caller's transaction: it is there once that commits.
   *
   * @param connection the caller's, not in autocommit mode
   * @param start what is to be started
   * @return what became of it, as {@link #start(MonitorStart)} says. An id that another transaction
   *     is starting is waited for
   * @throws SQLException if a statement fails; the transaction is to be rolled back
   * @throws IllegalArgumentException if the input is too large, or this has a codec and the input
   *     is not of the type's
   * @throws IllegalStateException if the connection is in autocommit mode, or the input is no
   *     {@link Json} and this has no codec
   */
  public StartedMonitor start(Connection connection, MonitorStart start) throws SQLException {
    if (connection.getAutoCommit()) {
      throw new IllegalStateException(
          "the connection is in autocommit mode, so the instance would be there without what it"
              + " belongs to; begin a transaction first, or start it without a connection");
    }
    return store.start(connection, stored(start));
  }

  /**
   * Ends an instance. A check that runs is not interrupted; its result is dropped.
   *
   * @param id the instance's id
   * @param reason why; not blank, at most 2,000 bytes in UTF-8. It becomes the output
   * @return {@link MonitorAnswer#DONE}, {@link MonitorAnswer#UNKNOWN} or {@link
   *     MonitorAnswer#FINISHED}
   */
  public MonitorAnswer terminate(String id, String reason) {
    return store.terminate(requireId(id), requireReason(reason));
  }

  /**
   * Suspends an instance: no check begins any more. The result of one that runs is kept. Its expiry
   * stays as it is.
   *
   * @param id the instance's id
   * @param reason why; not blank, at most 2,000 bytes in UTF-8
   * @return {@link MonitorAnswer#DONE}, {@link MonitorAnswer#UNCHANGED} if it is suspended already,
   *     {@link MonitorAnswer#UNKNOWN} or {@link MonitorAnswer#FINISHED}
   */
  public MonitorAnswer suspend(String id, String reason) {
    return store.suspend(requireId(id), requireReason(reason));
  }

  /**
   * Resumes an instance. What became due meanwhile is due at once; if it has expired meanwhile it
   * is completed as {@link MonitorOutcome#EXPIRED}.
   *
   * @param id the instance's id
   * @param reason why; not blank, at most 2,000 bytes in UTF-8
   * @return {@link MonitorAnswer#DONE}, {@link MonitorAnswer#UNCHANGED} if it is not suspended,
   *     {@link MonitorAnswer#UNKNOWN} or {@link MonitorAnswer#FINISHED}
   */
  public MonitorAnswer resume(String id, String reason) {
    return store.resume(requireId(id), requireReason(reason));
  }

  /**
   * Starts an instance that has ended anew, with its input, and as much time until its expiry as it
   * had. It is another execution; the history goes on, events that no check has seen are dropped.
   *
   * @param id the instance's id
   * @param reason why; not blank, at most 2,000 bytes in UTF-8
   * @return {@link MonitorAnswer#DONE}, {@link MonitorAnswer#UNKNOWN} or {@link
   *     MonitorAnswer#ALIVE}
   */
  public MonitorAnswer restart(String id, String reason) {
    return store.restart(requireId(id), requireReason(reason));
  }

  /**
   * Tells an instance something. It is kept until a check that was given it is committed; an
   * instance that {@linkplain MonitorResult#orOn waits} for an event of this name is checked at
   * once, and others see it with their next check. Raising it twice is telling it twice.
   *
   * @param id the instance's id
   * @param name what has happened; not blank, without control characters, at most 200 bytes in
   *     UTF-8
   * @param payload what is to be said of it, {@link Json} or anything that the codec encodes; at
   *     most {@value Json#MAX_BYTES} bytes of JSON
   * @return {@link MonitorAnswer#DONE}, {@link MonitorAnswer#UNKNOWN}, {@link
   *     MonitorAnswer#FINISHED}, or {@link MonitorAnswer#FULL} if {@value #MAX_UNSEEN_EVENTS}
   *     events wait already
   * @throws IllegalArgumentException if the name is not allowed, or the payload is too large or no
   *     JSON
   * @throws IllegalStateException if the payload is no {@link Json} and this has no codec
   */
  public MonitorAnswer raiseEvent(String id, String name, Object payload) {
    Objects.requireNonNull(payload, "payload");
    return store.raiseEvent(
        requireId(id),
        MonitorNames.requireEvent(name),
        values.writeUnchecked("the payload", payload, Json.MAX_BYTES));
  }

  /**
   * Makes the next check due now. If one runs, the next one follows it at once. If the message that
   * wakes the instance is missing, it is published.
   *
   * @param id the instance's id
   * @return {@link MonitorAnswer#DONE}, {@link MonitorAnswer#UNCHANGED} if it is suspended, {@link
   *     MonitorAnswer#UNKNOWN} or {@link MonitorAnswer#FINISHED}
   */
  public MonitorAnswer wake(String id) {
    return store.wake(requireId(id));
  }

  /**
   * Deletes an instance that has ended, with its history and its events.
   *
   * @param id the instance's id
   * @return {@link MonitorAnswer#DONE}, {@link MonitorAnswer#UNKNOWN} or {@link
   *     MonitorAnswer#ALIVE}
   */
  public MonitorAnswer purge(String id) {
    return store.purge(requireId(id));
  }

  /**
   * Deletes instances that have ended, with their history and their events; those that have not
   * ended, and those whose rows are locked, are passed by. To be called now and then, by any number
   * of processes.
   *
   * @param query which ones; it needs {@link MonitorQuery#createdFrom}, so that nobody deletes all
   *     by accident, and its limit is how many are deleted at most
   * @return how many were deleted; call again if it is as many as the limit. Where so many at once
   *     take the server too long, it deletes them in several transactions
   * @throws OutboxStoreException if a statement fails; what was deleted before stays deleted
   * @throws IllegalArgumentException if the query has no lower bound, a continuation, or a status
   *     of instances that have not ended
   */
  public int purge(MonitorQuery query) {
    if (query.createdFrom().isEmpty()) {
      throw new IllegalArgumentException(
          "the query has no lower bound; say from when on they were created by createdFrom(...)");
    }
    if (query.after().isPresent()) {
      throw new IllegalArgumentException(
          "the query has a continuation, which a purge needs not; leave it out");
    }
    query.statuses().stream()
        .filter(status -> !status.isFinished())
        .findFirst()
        .ifPresent(
            status -> {
              throw new IllegalArgumentException(
                  "status " + status + " is one of instances that have not ended; leave it out");
            });
    return store.purge(new InstanceQuery(query));
  }

  /**
   * Looks at an instance.
   *
   * @param id its id
   * @return the instance; empty if there is none
   */
  public Optional<MonitorInstance> get(String id) {
    return store.get(requireId(id));
  }

  /**
   * Looks at instances, a page at a time. Inputs, states and outputs are there if the query asks
   * for them by {@link MonitorQuery#with}. A page ends before its limit where it has about 8 MB.
   *
   * @param query which ones
   * @return the page
   * @throws IllegalArgumentException if the continuation is not one of such a query
   */
  public MonitorPage query(MonitorQuery query) {
    InstanceQuery asked = new InstanceQuery(query);
    InstanceStore.Found found = store.query(asked);
    List<MonitorInstance> page = found.instances();
    return new MonitorPage(
        page,
        found.more()
            ? Optional.of(asked.continuation(page.get(page.size() - 1)))
            : Optional.empty());
  }

  /**
   * Returns what has happened to an instance, the latest.
   *
   * @param id its id
   * @param most how many at most, 1 to 10,000
   * @return the latest entries, the latest first; fewer, but at least one, if they have more than
   *     about 8 MB together; none if there is no such instance
   * @throws IllegalArgumentException if the number is out of range
   */
  public List<HistoryEntry> history(String id, int most) {
    return history(id, most, Long.MAX_VALUE);
  }

  /**
   * Returns what has happened to an instance before an entry, to go on from there.
   *
   * @param id its id
   * @param most how many at most, 1 to 10,000
   * @param before the {@linkplain HistoryEntry#id id} of the entry, which is not returned
   * @return the latest entries of those before, as {@link #history(String, int)} returns them; none
   *     if there are no others
   * @throws IllegalArgumentException if the number is out of range
   */
  public List<HistoryEntry> history(String id, int most, long before) {
    if (most < 1 || most > MOST_ENTRIES) {
      throw new IllegalArgumentException("most is " + most + "; it must be 1 to 10,000");
    }
    return store.history(requireId(id), most, before);
  }

  /**
   * Waits until an instance has ended. It asks every half second.
   *
   * @param id the instance's id
   * @param timeout how long to wait at most; zero to 1 day
   * @return the instance, as it was at its end or when the time was over; empty if there is none
   * @throws InterruptedException if the thread is interrupted
   * @throws IllegalArgumentException if the time is out of range
   */
  public Optional<MonitorInstance> await(String id, Duration timeout) throws InterruptedException {
    return await(id, timeout, Duration.ofMillis(500));
  }

  /**
   * Waits until an instance has ended.
   *
   * @param id the instance's id
   * @param timeout how long to wait at most; zero to 1 day
   * @param interval how long to wait between two questions; 10 ms to 1 day
   * @return the instance, as it was at its end or when the time was over; empty if there is none
   * @throws InterruptedException if the thread is interrupted
   * @throws IllegalArgumentException if a time is out of range
   */
  public Optional<MonitorInstance> await(String id, Duration timeout, Duration interval)
      throws InterruptedException {
    requireWithin("timeout", timeout, Duration.ZERO);
    requireWithin("interval", interval, SHORTEST_INTERVAL);
    long until = System.nanoTime() + timeout.toNanos();
    while (true) {
      Optional<MonitorInstance> found = get(id);
      long left = until - System.nanoTime();
      if (found.isEmpty() || found.get().status().isFinished() || left <= 0) {
        return found;
      }
      TimeUnit.NANOSECONDS.sleep(Math.min(left, interval.toNanos()));
    }
  }

  /**
   * Counts the instances of each status, each up to {@value MonitorsHealth#MOST_COUNTED}.
   *
   * @return the counts, of every status
   */
  public Map<MonitorStatus, Long> counts() {
    return store.counts();
  }

  /**
   * Asks what somebody is to look at, by the rules of {@link MonitorAlert.Rule}: also while no node
   * runs, which is when it matters most. It goes through all instances that have not ended.
   *
   * @return what is overdue, then what has failed, of each at most {@value
   *     MonitorsHealth#MOST_ALERTS}, the longest lasting first
   */
  public List<MonitorAlert> alerts() {
    return store.alerts();
  }

  private InstanceStore.Start stored(MonitorStart start) {
    MonitorType<?> type = start.type();
    String input = values.writeUnchecked("the input", start.input(), Json.MAX_BYTES);
    if (values.codec() != null) {
      requireReadable(input, type);
    }
    return new InstanceStore.Start(
        type.name(),
        start.id().orElseGet(() -> UUID.randomUUID().toString()),
        input,
        start.parent().orElse(null),
        type.history(),
        start.firstCheckIn().orElse(Duration.ZERO),
        start.lifetime().orElse(null),
        start.expiresAt().orElse(null));
  }

  /** Its first check would fail for it. */
  private void requireReadable(String input, MonitorType<?> type) {
    try {
      values.read(Json.of(input), type.input());
    } catch (OutboxException e) { // or a class that refuses what it is given
      throw new IllegalArgumentException(
          "the input is not of the type of " + type + ": " + e.getMessage(), e);
    } catch (IllegalArgumentException e) {
      throw e;
    } catch (Exception e) { // of the codec
      throw new OutboxException("the input could not be read back: the cause says why", e);
    }
  }

  private static String requireId(String id) {
    return MonitorNames.requireId("instance id", id);
  }

  private static String requireReason(String reason) {
    int bytes = reason.getBytes(StandardCharsets.UTF_8).length;
    if (reason.isBlank() || reason.indexOf('\0') >= 0) {
      throw new IllegalArgumentException(
          "reason '%s' is blank or has a NUL; say it in words".formatted(OneLine.of(reason)));
    }
    if (bytes > MOST_REASON_BYTES) {
      throw new IllegalArgumentException(
          "reason has %d bytes; it may have %d, so shorten it".formatted(bytes, MOST_REASON_BYTES));
    }
    return reason;
  }

  private static void requireWithin(String what, Duration time, Duration least) {
    if (time.compareTo(least) < 0 || time.compareTo(LONGEST_WAIT) > 0) {
      throw new IllegalArgumentException(
          what + " is " + time + "; it must be " + least + " to " + LONGEST_WAIT);
    }
  }
}
