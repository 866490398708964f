package dev.outbox4j.monitor.internal;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.monitor.MonitorEvents.Dropped;
import dev.outbox4j.monitor.MonitorOutcome;
import dev.outbox4j.monitor.MonitorStatus;
import dev.outbox4j.monitor.RaisedEvent;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.internal.Results;
import dev.outbox4j.postgres.internal.ServerTime;
import dev.outbox4j.spi.HandlerTransactions.Decision;
import dev.outbox4j.triggers.internal.Statements;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/** Makes what is written when a wake is over. Thread-safe. */
final class CheckWrites {
  private static final Logger log = LoggerFactory.getLogger(CheckWrites.class);

  /** A history is trimmed now and then; it may be longer by this meanwhile. */
  private static final int TRIMMED_EVERY = 16;

  private final Statements statements;
  private final OutboxPublisher publisher;
  private final Observer observer;
  private final LockWaits waits;
  private final String application;

  CheckWrites(
      Statements statements,
      OutboxPublisher publisher,
      Observer observer,
      LockWaits waits,
      String application) {
    this.statements = statements;
    this.waits = waits;
    this.publisher = publisher;
    this.observer = observer;
    this.application = application;
  }

  /** What has been thrown, or said, when an instance fails. */
  record Failed(int attempts, String error, String type, String stack) {}

  /** The next check is to follow. */
  Write again(
      Instance instance,
      CheckResult result,
      List<RaisedEvent> events,
      Function<RuntimeException, Write> refused) {
    Map<String, Object> values = values(instance, result, events);
    values.put("delay", ServerTime.seconds(result.delay()));
    values.put("waits_for", result.waitsFor().toArray(String[]::new));
    return new OfAgain(instance, result, values, events, refused);
  }

  /** It ends by what its check has said. */
  Write end(
      Instance instance,
      CheckResult result,
      List<RaisedEvent> events,
      MonitorStatus status,
      @Nullable MonitorOutcome outcome,
      Function<RuntimeException, Write> refused) {
    Map<String, Object> values = values(instance, result, events);
    values.putAll(end(status, outcome, 1));
    values.put("output", text(result.output()));
    boolean failed = status == MonitorStatus.FAILED;
    values.put("reason", failed ? "" : text(result.reason()));
    values.put("error", failed ? text(result.reason()) : "");
    values.put("attempts", failed ? instance.attempts() + 1 : 0);
    return new OfCheck(
        instance,
        MonitorSql.END,
        values,
        false,
        result.messages(),
        events,
        refused,
        status,
        outcome);
  }

  /** Its time is over. */
  Write expired(Instance instance) {
    return withoutCheck(
        instance,
        MonitorSql.END,
        expired(instance, instance.iteration(), instance.attempts()),
        false,
        MonitorStatus.COMPLETED,
        MonitorOutcome.EXPIRED);
  }

  private static Map<String, Object> expired(Instance instance, long iteration, int attempts) {
    Map<String, Object> values = key(instance);
    values.putAll(kept());
    values.putAll(end(MonitorStatus.COMPLETED, MonitorOutcome.EXPIRED, 0));
    values.put("iteration", iteration);
    values.put("attempts", attempts);
    return values;
  }

  /** An attempt has failed, and another one follows. */
  Write attemptFailed(Instance instance, Failed failed, List<RaisedEvent> events, Duration delay) {
    Map<String, Object> values = key(instance);
    values.put("seen", events.size());
    values.put("attempts", failed.attempts());
    values.put("error", failed.error());
    values.put("delay", ServerTime.seconds(delay));
    return withoutCheck(instance, MonitorSql.ATTEMPT_FAILED, values, true, null, null);
  }

  /** The last attempt has failed. */
  Write failed(Instance instance, Failed failed) {
    Map<String, Object> values = key(instance);
    values.putAll(kept());
    values.putAll(end(MonitorStatus.FAILED, null, 0));
    values.put("attempts", failed.attempts());
    values.put("error", failed.error());
    values.put("error_type", failed.type());
    values.put("error_stack", failed.stack());
    return withoutCheck(instance, MonitorSql.END, values, false, MonitorStatus.FAILED, null);
  }

  /** It is suspended, and wakes when it is resumed. */
  Write suspended(Instance instance) {
    Map<String, Object> values = key(instance);
    values.put("message", instance.message());
    return new OfSuspended(instance, values);
  }

  private OfCheck withoutCheck(
      Instance instance,
      String template,
      Map<String, Object> values,
      boolean comesAgain,
      @Nullable MonitorStatus status,
      @Nullable MonitorOutcome outcome) {
    return new OfCheck(
        instance,
        template,
        values,
        comesAgain,
        List.of(),
        List.of(),
        failure -> null,
        status,
        outcome);
  }

  private static Map<String, Object> key(Instance instance) {
    Map<String, Object> values = new HashMap<>();
    values.put("id", instance.id());
    values.put("execution", instance.execution());
    values.put("iteration", instance.iteration());
    return values;
  }

  private static Map<String, Object> kept() {
    return Map.of(
        "keeps_state", true, "state", "", "custom_status", "", "output", "", "reason", "");
  }

  private static Map<String, Object> values(
      Instance instance, CheckResult result, List<RaisedEvent> events) {
    Map<String, Object> values = key(instance);
    values.put("keeps_state", result.keepsState());
    values.put("state", text(result.state()));
    values.put("custom_status", text(result.customStatus()));
    values.put("seen", events.size());
    return values;
  }

  private static Map<String, Object> end(
      MonitorStatus status, @Nullable MonitorOutcome outcome, int checks) {
    Map<String, Object> values = new HashMap<>();
    values.put("status", stored(status));
    values.put("outcome", outcome == null ? "" : stored(outcome));
    values.put("checks", checks);
    values.put("error", "");
    values.put("error_type", "");
    values.put("error_stack", "");
    return values;
  }

  static String stored(Enum<?> value) {
    return value.name().toLowerCase(Locale.ROOT);
  }

  private static String text(@Nullable String text) {
    return text == null ? "" : text;
  }

  private void tellEnded(
      Instance instance, MonitorStatus status, @Nullable MonitorOutcome outcome) {
    log.atLevel(status == MonitorStatus.COMPLETED ? Level.DEBUG : Level.INFO)
        .log("monitor {}: {}{}", instance, status, outcome == null ? "" : ", " + outcome);
    observer.tell(
        events -> events.ended(application, instance.type(), instance.id(), status, outcome));
  }

  private void drop(Instance instance, Dropped why) {
    observer.tell(events -> events.dropped(application, instance.type(), instance.id(), why));
  }

  /**
   * What was written of an instance.
   *
   * @param delay in how many seconds it is due
   * @param over whether its time is over, so that it is to be ended
   * @param iteration how many checks are committed now
   * @param attempts how many attempts at the next one have failed
   */
  private record Written(double delay, boolean over, long iteration, int attempts) {}

  /** Runs what begins with settings; empty if no row was to be written. */
  private Optional<Written> run(Connection connection, String template, Map<String, Object> values)
      throws SQLException {
    Map<String, Object> all = new HashMap<>(values);
    all.put("lock_timeout", waits.timeout());
    return statements.execute(connection, template, all, CheckWrites::written);
  }

  private static Optional<Written> written(Results results) throws SQLException {
    try (ResultSet row = results.next().rows()) {
      return row.next()
          ? Optional.of(
              new Written(row.getDouble(1), row.getBoolean(2), row.getLong(3), row.getInt(4)))
          : Optional.empty();
    }
  }

  /** What a check came to, or the end of an instance without one. */
  private class OfCheck implements Write {
    private final Instance instance;
    private final String template;
    private final Map<String, Object> values;
    private final boolean comesAgain;
    private final List<OutboxMessage> messages;
    private final List<RaisedEvent> events;
    private final Function<RuntimeException, @Nullable Write> refused;
    private final @Nullable MonitorStatus status;
    private final @Nullable MonitorOutcome outcome;
    private boolean late;
    private boolean over;

    OfCheck(
        Instance instance,
        String template,
        Map<String, Object> values,
        boolean comesAgain,
        List<OutboxMessage> messages,
        List<RaisedEvent> events,
        Function<RuntimeException, @Nullable Write> refused,
        @Nullable MonitorStatus status,
        @Nullable MonitorOutcome outcome) {
      this.instance = instance;
      this.template = template;
      this.values = values;
      this.comesAgain = comesAgain;
      this.messages = messages;
      this.events = events;
      this.refused = refused;
      this.status = status;
      this.outcome = outcome;
    }

    @Override
    public Instance instance() {
      return instance;
    }

    @Override
    public Decision on(Connection connection) throws SQLException {
      Optional<Written> found = run(connection, template, values);
      late = found.isEmpty();
      if (late) {
        return Decision.ack();
      }
      if (!events.isEmpty()) {
        Map<String, Object> seen = key(instance);
        seen.put("last", events.get(events.size() - 1).id());
        statements.update(connection, MonitorSql.SEEN, seen);
      }
      if (trims()) {
        statements.update(connection, MonitorSql.TRIM, Map.of("id", instance.id()));
      }
      if (!messages.isEmpty()) {
        publisher.publish(connection, messages);
      }
      Written written = found.get();
      over = written.over();
      if (over) { // a wake would find that, too, but has to be claimed first
        run(connection, MonitorSql.END, expired(instance, written.iteration(), written.attempts()));
      }
      return comesAgain && !over ? Decision.reschedule(duration(written.delay())) : Decision.ack();
    }

    /** It has more entries where attempts failed. */
    final boolean trims() {
      return !events.isEmpty()
          || (instance.history() > 0
              && (instance.iteration() % TRIMMED_EVERY == 0 || instance.attempts() > 0));
    }

    private static Duration duration(double seconds) {
      return seconds <= 0 ? Duration.ZERO : Duration.ofNanos((long) (seconds * 1e9));
    }

    @Override
    public void committed() {
      if (late) {
        log.info(
            "monitor {}: the result of check {} comes too late and is dropped",
            instance,
            instance.iteration() + 1);
        drop(instance, Dropped.LATE_RESULT);
      } else if (status != null) {
        tellEnded(instance, status, outcome);
      } else if (over) {
        tellEnded(instance, MonitorStatus.COMPLETED, MonitorOutcome.EXPIRED);
      }
    }

    @Override
    public @Nullable Write refused(RuntimeException failure) {
      return refused.apply(failure);
    }

    @Override
    public String toString() {
      return "monitor " + instance;
    }
  }

  /** What a check came to that is to be followed by another. */
  private final class OfAgain extends OfCheck {
    private final Again again;

    OfAgain(
        Instance instance,
        CheckResult result,
        Map<String, Object> values,
        List<RaisedEvent> events,
        Function<RuntimeException, @Nullable Write> refused) {
      super(
          instance, MonitorSql.AGAIN, values, true, result.messages(), events, refused, null, null);
      this.again = new Again(instance, result, trims());
    }

    @Override
    public @Nullable Again ofGroup() {
      return again.fits() ? again : null;
    }
  }

  /** Notes that an instance has no message any more. */
  private final class OfSuspended implements Write {
    private final Instance instance;
    private final Map<String, Object> values;

    OfSuspended(Instance instance, Map<String, Object> values) {
      this.instance = instance;
      this.values = values;
    }

    @Override
    public Instance instance() {
      return instance;
    }

    @Override
    public Decision on(Connection connection) throws SQLException {
      boolean noted = run(connection, MonitorSql.LOSE_MESSAGE, values).isPresent();
      return noted ? Decision.ack() : Decision.reschedule(Duration.ZERO); // resumed meanwhile
    }

    @Override
    public void committed() {
      drop(instance, Dropped.SUSPENDED);
    }

    @Override
    public @Nullable Write refused(RuntimeException failure) {
      return null;
    }

    @Override
    public String toString() {
      return "monitor " + instance;
    }
  }
}
