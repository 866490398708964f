package dev.outbox4j.monitor;

import dev.outbox4j.Delivery;
import dev.outbox4j.internal.Utf8;
import dev.outbox4j.monitor.internal.Check;
import dev.outbox4j.monitor.internal.CheckResult;
import dev.outbox4j.monitor.internal.Instance;
import dev.outbox4j.monitor.internal.Observer;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Calls a check with values of its types, and takes its result apart.
 *
 * @param type its type
 * @param check the check
 * @param values reads and writes values
 * @param application whose monitors
 * @param observer told of each call
 * @param <I> the input
 */
record TypedCheck<I>(
    MonitorType<I> type,
    MonitorCheck<I> check,
    Values values,
    String application,
    Observer observer)
    implements Check {
  private static final int REASON_BYTES = 2_000;

  @Override
  public CheckResult run(Instance instance, List<RaisedEvent> events, Delivery delivery)
      throws Exception {
    Call call = new Call(instance, input(instance), events, delivery);
    long begun = System.nanoTime();
    Throwable failure = null;
    try {
      MonitorResult result = check.check(call);
      if (result == null) {
        throw new IllegalStateException(
            "the check returned null; return again(), done(), fail(...) or cancel(...)");
      }
      return encoded(result);
    } catch (Throwable e) {
      failure = e;
      throw e;
    } finally {
      tell(call, Duration.ofNanos(System.nanoTime() - begun), failure);
    }
  }

  private void tell(Call call, Duration took, @Nullable Throwable failure) {
    observer.tell(events -> events.checked(application, call, took, failure));
  }

  @SuppressWarnings("unchecked") // that is what the type names
  private I input(Instance instance) throws Exception {
    return (I) values.read(Json.of(instance.input()), type.input());
  }

  private CheckResult encoded(MonitorResult result) throws Exception {
    Optional<Object> output = result.value();
    Optional<Object> state = result.state();
    Optional<Object> status = result.customStatus();
    return new CheckResult(
        CheckResult.Kind.valueOf(result.kind().name()),
        result.delay().orElse(type.every()),
        output.isEmpty() ? null : values.write("the output", output.get(), Json.MAX_BYTES),
        result.reason().map(reason -> Utf8.bounded(reason, REASON_BYTES)).orElse(null),
        result.keepsState(),
        state.isEmpty() ? null : values.write("the state", state.get(), Json.MAX_BYTES),
        status.isEmpty()
            ? null
            : values.write("the custom status", status.get(), MonitorInstance.MAX_STATUS_BYTES),
        result.waitsFor(),
        result.messages());
  }

  /** What a check is called with. */
  private final class Call implements MonitorCall<I> {
    private final Instance instance;
    private final I input;
    private final List<RaisedEvent> events;
    private final Delivery delivery;

    Call(Instance instance, I input, List<RaisedEvent> events, Delivery delivery) {
      this.instance = instance;
      this.input = input;
      this.events = List.copyOf(events);
      this.delivery = delivery;
    }

    @Override
    public String type() {
      return type.name();
    }

    @Override
    public String id() {
      return instance.id();
    }

    @Override
    public long execution() {
      return instance.execution();
    }

    @Override
    public I input() {
      return input;
    }

    @Override
    public Optional<Json> state() {
      return Optional.ofNullable(instance.state()).map(Json::of);
    }

    @Override
    public <S> Optional<S> state(Class<S> type) {
      return state().map(state -> read(state, type));
    }

    @Override
    public <T> T read(Json value, Class<T> type) {
      return values.readUnchecked(value, type);
    }

    @Override
    public long iteration() {
      return instance.iteration() + 1;
    }

    @Override
    public int attempt() {
      return instance.attempts() + delivery.attempt();
    }

    @Override
    public Instant createdAt() {
      return instance.createdAt();
    }

    @Override
    public Optional<Instant> expiresAt() {
      return Optional.ofNullable(instance.expiresAt());
    }

    @Override
    public List<RaisedEvent> events() {
      return events;
    }

    @Override
    public boolean isCancelled() {
      return delivery.stopping() || delivery.leaseLost();
    }

    @Override
    public boolean isFenced() {
      return delivery.leaseLost();
    }

    @Override
    public String toString() {
      return "MonitorCall[%s, %s, %d]".formatted(type(), id(), iteration());
    }
  }
}
