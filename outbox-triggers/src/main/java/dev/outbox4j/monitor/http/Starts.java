package dev.outbox4j.monitor.http;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.internal.OneLine;
import dev.outbox4j.monitor.MonitorControl;
import dev.outbox4j.monitor.MonitorInstance;
import dev.outbox4j.monitor.MonitorStart;
import dev.outbox4j.monitor.MonitorStatus;
import dev.outbox4j.monitor.MonitorType;
import dev.outbox4j.monitor.StartedMonitor;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Starts instances, and waits for them if that is asked for. */
final class Starts {
  private static final Logger log = LoggerFactory.getLogger(Starts.class);
  private static final String TIMEOUT = "timeout";
  private static final String INTERVAL = "pollingInterval";
  private static final Set<String> PARAMETERS = Set.of(TIMEOUT, INTERVAL, Replies.ERROR_ON_FAILURE);
  private static final Duration DEFAULT_INTERVAL = Duration.ofSeconds(1);
  private static final Duration SHORTEST_INTERVAL = Duration.ofMillis(100);

  private final MonitorControl control;
  private final Map<String, MonitorType<?>> types;
  private final Duration longestWait;
  private final Replies replies;

  Starts(
      MonitorControl control,
      Map<String, MonitorType<?>> types,
      Duration longestWait,
      Replies replies) {
    this.control = control;
    this.types = Map.copyOf(types);
    this.longestWait = longestWait;
    this.replies = replies;
  }

  /** All that may be refused is looked at before anything is started. */
  MonitorResponse start(MonitorRequest request, String typeName, List<String> id) {
    MonitorType<?> type = types.get(typeName);
    if (type == null) {
      return Replies.refused(404, "there is no monitor type '" + typeName + "'");
    }
    QueryParameters asked = QueryParameters.parse(request.query(), PARAMETERS);
    Optional<Duration> timeout = asked.seconds(TIMEOUT, Duration.ZERO, longestWait);
    Optional<Duration> interval = asked.seconds(INTERVAL, SHORTEST_INTERVAL, longestWait);
    boolean errorOnFailure = asked.flag(Replies.ERROR_ON_FAILURE, false);
    if (interval.isPresent() && timeout.isEmpty()) {
      throw new IllegalArgumentException(
          "there is a pollingInterval and no timeout; say how long to wait, or leave both out");
    }
    MonitorStart start = MonitorStart.ofJson(type, Bodies.json(request));
    String of = id.isEmpty() ? UUID.randomUUID().toString() : id.get(0);
    StartedMonitor started;
    try {
      started = control.start(start.id(of));
    } catch (OutboxStoreException e) {
      if (!e.outcomeUnknown()) {
        throw e;
      }
      log.warn("monitor {}: whether it was started is not known", OneLine.of(of), e);
      return replies.perhapsStarted(of);
    }
    if (!started.started()) {
      return MonitorHttp.answer(started.answer(), started.id(), Replies.accepted());
    }
    return timeout
        .flatMap(time -> ended(started.id(), time, interval.orElse(DEFAULT_INTERVAL)))
        .map(instance -> end(instance, errorOnFailure))
        .orElseGet(() -> replies.started(started.id()));
  }

  private Optional<MonitorInstance> ended(String id, Duration timeout, Duration interval) {
    try {
      return control
          .await(id, timeout, interval)
          .filter(instance -> instance.status().isFinished());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return Optional.empty(); // it was started all the same
    } catch (OutboxStoreException e) { // who was told otherwise would start another
      log.warn("monitor {}: it was started, and could not be waited for", OneLine.of(id), e);
      return Optional.empty();
    }
  }

  private MonitorResponse end(MonitorInstance instance, boolean errorOnFailure) {
    return instance.status() == MonitorStatus.COMPLETED
        ? replies.output(instance)
        : replies.status(instance, true, Optional.empty(), errorOnFailure);
  }
}
