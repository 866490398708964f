package dev.outbox4j.postgres.notify.internal;

import dev.outbox4j.OutboxException;
import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.postgres.internal.Redaction;
import dev.outbox4j.postgres.internal.Remedies;
import java.time.Duration;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The connection of one channel and the daemon thread {@code outbox-listen-<channel>} that owns it:
 * connects, listens, probes, and starts again after any failure until it is stopped.
 */
final class ListenLoop implements Runnable {
  private static final Logger LOG = LoggerFactory.getLogger(ListenLoop.class);
  private static final Duration OPEN_LIMIT = Duration.ofSeconds(10);
  // above the drivers' own limit, whose message says more
  private static final Duration ATTEMPT_LIMIT = OPEN_LIMIT.plusSeconds(2);
  private static final Duration STOP_LIMIT = Duration.ofSeconds(1);
  private static final long FIRST_PAUSE_MILLIS = 100;
  private static final long MAX_PAUSE_MILLIS = 2_000;

  private static final LinkState OUT =
      LinkState.down(new OutboxException("LISTEN is out, and why could not be told"));

  private final String channel;
  private final String listenSql;
  private final String checkSql;
  private final ListenDriver driver;
  private final Probe probe;
  private final ThreadFactory threads;
  private final Thread thread;
  private final List<Registration> registrations = new CopyOnWriteArrayList<>();

  private final CountDownLatch stopping = new CountDownLatch(1);

  private volatile LinkState state = LinkState.UNKNOWN;
  private volatile @Nullable ListenConnection current;

  // confined to the thread
  private @Nullable Opening opening;
  private boolean inOutage;
  private int failures;

  ListenLoop(String channel, ListenDriver driver, Probe probe, ThreadFactory threads) {
    this.channel = channel;
    this.listenSql = "listen " + Names.quoted(channel);
    this.checkSql = ListenCheck.of(channel);
    this.driver = driver;
    this.probe = probe;
    this.threads = threads;
    this.thread = newThread(this, threadName());
  }

  private Thread newThread(Runnable task, String name) {
    Thread created = threads.newThread(task);
    created.setName(name);
    created.setDaemon(true);
    return created;
  }

  private String threadName() {
    return "outbox-listen-" + channel;
  }

  String channel() {
    return channel;
  }

  LinkState state() {
    return state;
  }

  void start() {
    thread.start();
  }

  /** Adds a listener; one that comes late hears at once what the others have heard. */
  void add(Registration registration) {
    registrations.add(registration);
    if (state != LinkState.UNKNOWN) {
      try {
        newThread(registration::tellState, threadName() + "-greeting").start();
      } catch (RuntimeException | Error noThread) { // its caller has nothing to close
        registrations.remove(registration);
        throw noThread;
      }
    }
  }

  /** Removes a listener and tells whether it was the last one. */
  boolean remove(Registration registration) {
    registrations.remove(registration);
    return registrations.isEmpty();
  }

  /** Ends the thread and the connection; returns when they are gone, or after a second. */
  void stop(boolean mayWait) {
    stopping.countDown();
    thread.interrupt();
    ListenConnection connection = current;
    if (connection != null) {
      connection.abort();
    }
    if (!mayWait || Thread.currentThread() == thread) {
      return;
    }
    try {
      thread.join(STOP_LIMIT.toMillis());
      if (thread.isAlive()) {
        LOG.warn(
            "LISTEN on channel {} by {} did not end within {} ms; its thread ends as soon as the driver lets it",
            channel,
            driver.name(),
            STOP_LIMIT.toMillis());
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Override
  public void run() {
    while (!isStopped()) {
      try {
        listenUntilLost();
      } catch (Throwable e) { // the supervisor: whatever ended the connection, the next one follows
        survive(e);
      }
      pause();
    }
    if (opening != null) {
      opening.abandon();
    }
    LOG.debug("LISTEN on channel {} by {} ended", channel, driver.name());
  }

  private void listenUntilLost() throws Exception {
    ListenConnection connection = connect();
    try {
      // stop() says so before it reads current; here it is the other way round, so one sees
      // the other
      current = connection;
      if (!isStopped()) {
        connection.execute("set application_name = 'outbox4j-listen'", OPEN_LIMIT);
        connection.execute(listenSql, OPEN_LIMIT);
        connection.execute(checkSql, OPEN_LIMIT);
        inForce();
        pump(connection);
      }
    } finally {
      current = null;
      if (isStopped()) {
        Thread.interrupted(); // it was for the wait that has ended, not for the close
      }
      connection.close();
    }
  }

  private ListenConnection connect() throws Exception {
    if (opening != null && opening.isTooOld() && !opening.isDone()) {
      opening.abandon();
      opening = null;
    }
    Opening attempt = opening;
    if (attempt == null) {
      attempt = Opening.start(driver, this::deliver, OPEN_LIMIT, threadName() + "-connect");
      opening = attempt;
    }
    if (!attempt.awaitEnd(ATTEMPT_LIMIT)) {
      throw new OutboxException(
          "The server has given no session within "
              + ATTEMPT_LIMIT.toMillis()
              + " ms; see that host and port are right and that nothing between drops packets");
    }
    opening = null;
    return attempt.connection();
  }

  private void pump(ListenConnection connection) throws Exception {
    long probeAt = System.nanoTime() + probe.interval().toNanos();
    while (!isStopped()) {
      long wait = probeAt - System.nanoTime();
      if (wait > 0) {
        connection.await(Duration.ofNanos(wait));
      } else {
        connection.execute(checkSql, probe.timeout());
        probeAt = System.nanoTime() + probe.interval().toNanos();
      }
    }
  }

  private void deliver(String payload) {
    for (Registration registration : registrations) {
      registration.tellNotification(payload);
    }
  }

  private void inForce() {
    failures = 0;
    if (inOutage) {
      inOutage = false;
      LOG.info(
          "LISTEN on channel {} by {} is in force again, for {} subscriber(s)",
          channel,
          driver.name(),
          registrations.size());
    } else {
      LOG.info("LISTEN on channel {} by {} is in force", channel, driver.name());
    }
    tell(LinkState.up());
  }

  /** What cannot be told in full, as memory or a logger fails, is told in short. */
  private void survive(Throwable thrown) {
    try {
      lost(thrown);
    } catch (Throwable worse) {
      boolean first = !inOutage;
      inOutage = true;
      tell(OUT);
      if (first) {
        logUntold();
      }
    }
  }

  private void logUntold() {
    try {
      LOG.warn(
          "LISTEN on channel {} is out, and why could not be told; it is tried again until it succeeds",
          channel);
    } catch (Throwable silent) {
      // it is the log that fails: health has said it
    }
  }

  private void lost(Throwable thrown) {
    if (isStopped()) {
      return;
    }
    Throwable cause = withRemedy(withReason(Redaction.redact(thrown)), driver.sqlState(thrown));
    if (inOutage) {
      LOG.debug("LISTEN on channel {} by {} is still out", channel, driver.name(), cause);
    } else {
      inOutage = true;
      LOG.warn(
          "LISTEN on channel {} by {} is out: {}; it is tried again until it succeeds, and all subscribers that share it ({} so far) find messages by polling meanwhile",
          channel,
          driver.name(),
          String.valueOf(cause),
          registrations.size());
      LOG.debug("LISTEN on channel {} by {} is out because", channel, driver.name(), cause);
    }
    tell(LinkState.down(cause));
  }

  /** Drivers keep the reason deep down, and the log and health show one line. */
  private static Throwable withReason(Throwable cause) {
    Set<Throwable> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    Throwable root = cause;
    while (root.getCause() != null && seen.add(root)) {
      root = root.getCause();
    }
    String told = String.valueOf(cause.getMessage());
    String reason = root.getMessage();
    return reason == null || told.contains(reason)
        ? cause
        : new OutboxException(told + " (" + reason + ")", cause);
  }

  /** The words of the server say who was refused; what to look at is added. */
  private static Throwable withRemedy(Throwable cause, @Nullable String sqlState) {
    return Remedies.isRefusal(sqlState)
        ? new OutboxException(cause.getMessage() + "; " + Remedies.ofNoConnection(sqlState), cause)
        : cause;
  }

  private void tell(LinkState news) {
    state = news;
    registrations.forEach(Registration::tellState);
  }

  /**
   * Doubles from 100 ms to 2 s, less up to a quarter so that many processes do not come at once.
   */
  private void pause() {
    if (isStopped()) {
      return;
    }
    long ceiling = Math.min(MAX_PAUSE_MILLIS, FIRST_PAUSE_MILLIS << Math.min(failures++, 10));
    try {
      if (stopping.await(
          ThreadLocalRandom.current().nextLong(ceiling * 3 / 4, ceiling), TimeUnit.MILLISECONDS)) {
        LOG.debug("LISTEN on channel {} by {} was stopped in an outage", channel, driver.name());
      }
    } catch (InterruptedException e) {
      LOG.debug(
          "Woken from the pause; only stop() interrupts, and the loop asks whether it did", e);
    }
  }

  private boolean isStopped() {
    return stopping.getCount() == 0;
  }
}
