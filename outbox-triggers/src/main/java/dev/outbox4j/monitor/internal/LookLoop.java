package dev.outbox4j.monitor.internal;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.Loop;
import dev.outbox4j.internal.OneLine;
import dev.outbox4j.monitor.MonitorAlert;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread that looks at instances now and then: a wake that nobody would bring is published, and
 * what is overdue or has failed is told. It goes through them a page at a time.
 */
public final class LookLoop {
  private static final Logger log = LoggerFactory.getLogger(LookLoop.class);
  private static final Duration EVERY = Duration.ofSeconds(30);

  /** Between two pages of many: all are looked at within some minutes, and nobody notices it. */
  private static final Duration BETWEEN_PAGES = Duration.ofSeconds(1);

  private static final Duration STOP_TIMEOUT = Duration.ofSeconds(20);
  private static final int PAGE = 10_000;
  private static final int MOST_MENDED = 1_000;

  private final InstanceStore store;
  private final NodeState state;
  private final Observer observer;
  private final String application;
  private final int page;
  private final Loop loop;
  private List<MonitorAlert> overdue = new ArrayList<>();
  private String after = "";
  private long begunAt;

  /**
   * Creates a loop that is not started.
   *
   * @param store the record of the instances
   * @param application whose monitors
   * @param queue where their messages are published
   * @param state where to note what this node knows
   * @param observer told of each look
   */
  public LookLoop(
      InstanceStore store, String application, String queue, NodeState state, Observer observer) {
    this(store, application, queue, state, observer, PAGE);
  }

  LookLoop(
      InstanceStore store,
      String application,
      String queue,
      NodeState state,
      Observer observer,
      int page) {
    this.store = store;
    this.state = state;
    this.observer = observer;
    this.application = application;
    this.page = page;
    this.loop =
        new Loop(
            new EngineThreads(queue, LookLoop.class.getClassLoader()),
            "looks",
            told -> timedStep(),
            this::failed);
  }

  /** Starts. */
  public void start() {
    loop.start();
  }

  /** Begins no further look. */
  public void requestStop() {
    loop.stop();
  }

  /** Ends after the look under way; idempotent. */
  public void stop() {
    loop.stop();
    if (!loop.join(System.nanoTime() + STOP_TIMEOUT.toNanos())) {
      loop.abandon();
    }
  }

  private void failed(Throwable failure) {
    state.failed(failure);
    observer.tell(events -> events.looked(application, sinceBegun(), failure));
  }

  private Duration sinceBegun() {
    return Duration.ofNanos(System.nanoTime() - begunAt);
  }

  private long timedStep() {
    if (loop.stopping()) {
      return Loop.END;
    }
    begunAt = System.nanoTime();
    boolean all = step();
    observer.tell(events -> events.looked(application, sinceBegun(), null));
    if (!all) {
      return BETWEEN_PAGES.toNanos();
    }
    // the nodes take turns
    return EVERY.toNanos() * ThreadLocalRandom.current().nextLong(80, 101) / 100;
  }

  /** Looks at a page, and returns whether it was the last one. */
  boolean step() {
    InstanceStore.Page found = store.look(after, page);
    if (mend(found.toMend()) > 0 && found.toMend().size() > MOST_MENDED) {
      return false; // the rest of the page is next
    }
    overdue.addAll(found.overdue());
    overdue = new ArrayList<>(InstanceStore.longest(overdue));
    boolean all = found.last() == null;
    after = all ? "" : String.valueOf(found.last());
    if (all) {
      List<MonitorAlert> alerts = new ArrayList<>(overdue); // none of them is cut for another rule
      alerts.addAll(store.failed());
      state.looked(store.counts(), alerts);
      overdue.clear();
    }
    return all;
  }

  /** One of which a row is at fault is not to keep the others from it. */
  private boolean mend(String id) {
    try {
      return store.mend(id);
    } catch (OutboxStoreException e) {
      if (e.fault() != Fault.ROW && e.fault() != Fault.TIMEOUT) {
        throw e;
      }
      log.warn("monitor {}: it could not be mended, trying again", OneLine.of(id), e);
      return false;
    }
  }

  private int mend(List<String> ids) {
    List<String> mended = new ArrayList<>();
    for (String id : ids.stream().limit(MOST_MENDED).toList()) {
      if (mend(id)) {
        mended.add(id);
      }
    }
    if (!mended.isEmpty()) {
      log.warn(
          "monitors of {}: {} had no message that would wake them, and have one now: {}",
          application,
          mended.size(),
          mended.stream().limit(10).toList());
      observer.tell(events -> events.repaired(application, mended.size()));
    }
    return mended.size();
  }
}
