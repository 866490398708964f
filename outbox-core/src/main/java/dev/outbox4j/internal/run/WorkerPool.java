package dev.outbox4j.internal.run;

import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.state.Buffer;
import dev.outbox4j.internal.state.EngineHealth;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.Permits;
import dev.outbox4j.internal.state.Prefetch;
import dev.outbox4j.internal.state.Room;
import dev.outbox4j.internal.state.Shared;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs buffered rows, at most {@code workers} at once. Thread-safe.
 *
 * <p>A permit stands for one running handler. A <em>runner</em> is a task on the executor that
 * holds a permit and takes rows until the buffer is empty, so an idle subscriber occupies no thread
 * of a user's executor. A handler whose stage is pending keeps its runner's permit, and the runner
 * goes on only with a new one.
 */
public final class WorkerPool {
  private static final Logger log = LoggerFactory.getLogger(WorkerPool.class);

  private static final long LONGEST_PATIENCE = TimeUnit.SECONDS.toNanos(30);

  /** How long a runner keeps a thread of a user's executor from other tasks. */
  private static final long LONGEST_TURN = TimeUnit.MILLISECONDS.toNanos(100);

  private final String subscriber;
  private final Permits permits;
  private final Buffer buffer;
  private final Prefetch prefetch;
  private final Room room;
  private final DeliveryTask task;
  private final Executor executor;
  private final @Nullable ExecutorService own;
  private volatile @Nullable Thread stopper;
  private volatile boolean rejecting;

  /** Given to a user's executor and not begun, so never more than there are permits. */
  private final Queue<Runner> offered = new ConcurrentLinkedQueue<>();

  /** How long the executor may take to begin a runner before it is offered again. */
  private final long patienceNanos;

  private volatile boolean dropping;
  private volatile boolean ended;

  public WorkerPool(
      SubscriberSettings settings,
      Shared shared,
      Permits permits,
      Buffer buffer,
      Prefetch prefetch,
      DeliveryTask task) {
    this.subscriber = settings.name();
    this.permits = permits;
    this.buffer = buffer;
    this.prefetch = prefetch;
    this.room = shared.room();
    this.task = task;
    this.patienceNanos = Math.min(LONGEST_PATIENCE, settings.claiming().lease().toNanos() / 2);
    Executor given = settings.work().executor();
    this.own = given == null ? ownExecutor(shared.threads(), settings.work()) : null;
    this.executor = given == null ? Objects.requireNonNull(own) : given;
  }

  private static ExecutorService ownExecutor(
      EngineThreads threads, SubscriberSettings.Work settings) {
    if (settings.virtualThreads()) {
      return VirtualThreads.perTask(threads.prefix() + "worker-");
    }
    AtomicInteger number = new AtomicInteger();
    // with a queue, since a thread that runs takes its next runner without a wake-up; no thread
    // ends for want of work, since it might do so while others hang and a runner is queued
    return Executors.newFixedThreadPool(
        settings.workers(), task -> threads.newThread(task, "worker-" + number.incrementAndGet()));
  }

  /** Starts runners for so many new rows, as far as permits go. */
  public void kick(int rows) {
    if (own == null) {
      takeBack(System.nanoTime() - patienceNanos);
    }
    for (int i = 0; i < rows && permits.tryAcquire(); i++) {
      try {
        if (own == null) {
          offer();
        } else {
          executor.execute(this::runRows);
        }
        rejecting = false;
      } catch (RuntimeException | Error refused) { // rejected, or no thread to be had
        release();
        if (ended) {
          return; // a claim answered after the stop; its rows are given back
        }
        if (!rejecting) {
          rejecting = true;
          log.warn(
              "[{}] the executor rejects handlers; buffered rows wait and are offered again: {}",
              subscriber,
              EngineHealth.words(refused));
        }
        return;
      }
    }
  }

  private void offer() {
    Runner runner = new Runner();
    offered.add(runner);
    try {
      runner.offering = true;
      executor.execute(runner);
      runner.offering = false;
    } catch (RuntimeException | Error refused) {
      offered.remove(runner);
      if (runner.taken.compareAndSet(false, true)) { // else it ran, and gave its permit back
        throw refused;
      }
    }
    if (runner.onCaller && runner.taken.compareAndSet(false, true)) {
      offered.remove(runner);
      throw new RejectedExecutionException(
          "it runs tasks on the thread that hands them over; give executor(...) one that has threads"
              + " of its own");
    }
  }

  /**
   * Takes back the permits of runners that the executor was given before an instant and has not
   * begun: it may have dropped them without a word, as some saturation policies do. One that is
   * only late finds its permit gone and does nothing.
   */
  private void takeBack(long givenBefore) {
    int takenBack = 0;
    for (Runner runner = offered.peek();
        runner != null && runner.givenAt - givenBefore <= 0;
        runner = offered.peek()) {
      offered.remove(runner);
      if (runner.taken.compareAndSet(false, true)) {
        release();
        takenBack++;
      }
    }
    if (takenBack > 0 && !dropping && stopper == null) {
      dropping = true;
      log.warn(
          "[{}] the executor has not begun {} handler(s) within {} ms: it is busy, or drops tasks"
              + " without rejecting them; they are offered again",
          subscriber,
          takenBack,
          TimeUnit.NANOSECONDS.toMillis(patienceNanos));
    }
  }

  /** A task for the executor; holds a permit from its making on. */
  private final class Runner implements Runnable {
    private final long givenAt = System.nanoTime();
    private final Thread giver = Thread.currentThread();
    private final AtomicBoolean taken = new AtomicBoolean();

    // confined to the giver
    private boolean offering;
    private boolean onCaller;

    @Override
    public void run() {
      if (Thread.currentThread() == giver && offering) {
        onCaller = true; // a handler there would hold up claims, or another handler's end
        return;
      }
      if (taken.compareAndSet(false, true)) {
        offered.remove(this);
        dropping = false;
        runRows();
      }
    }
  }

  private void runRows() {
    long until = System.nanoTime() + LONGEST_TURN;
    boolean more;
    do {
      more = runBuffered(until);
      // a row added after the last look found this permit taken, so look once more without it
    } while (more && !buffer.isEmpty() && !yields(until) && permits.tryAcquire());
    if (more && own == null && !buffer.isEmpty() && !Thread.currentThread().isInterrupted()) {
      kick(1); // behind what else the executor has to do
    }
  }

  /** Tells whether a thread of a user's executor is to be given back. */
  private boolean yields(long until) {
    return own == null
        && (System.nanoTime() - until >= 0 || Thread.currentThread().isInterrupted());
  }

  /** Runs rows and gives the permit back, whatever happens; false if a pending stage took it. */
  private boolean runBuffered(long until) {
    boolean held = true;
    try {
      while (!yields(until)) {
        HeldRow row = buffer.poll();
        if (row == null) {
          return true;
        }
        prefetch.taken();
        room.mayBeFree();
        if (!task.run(row, this::stageEnded, own == null)) {
          held = permits.tryAcquire(); // the permit went with the pending stage
          if (!held) {
            return false;
          }
        }
      }
      return true;
    } finally {
      if (held) {
        release();
        room.mayBeFree();
      }
    }
  }

  private void stageEnded() {
    release();
    room.mayBeFree();
    if (!buffer.isEmpty()) {
      kick(1);
    }
  }

  private void release() {
    permits.release();
    Thread waiting = stopper;
    if (waiting != null) {
      LockSupport.unpark(waiting);
    }
  }

  /** Tells whether the executor takes no handlers. */
  public boolean rejecting() {
    return rejecting;
  }

  /** Returns how many handlers run, pending stages included. */
  public int running() {
    return permits.taken();
  }

  /**
   * Waits until no handler runs and no timeout is being decided; for the one thread that drains.
   */
  public boolean awaitQuiet(long deadline, IntSupplier deciding) {
    stopper = Thread.currentThread();
    boolean interrupted = false;
    try {
      while (running() > 0 || deciding.getAsInt() > 0) {
        takeBack(System.nanoTime()); // nothing is left for runners that were not begun
        long left = deadline - System.nanoTime();
        if (left <= 0) {
          return false;
        }
        LockSupport.parkNanos(this, Math.min(left, TimeUnit.MILLISECONDS.toNanos(100)));
        interrupted |= Thread.interrupted();
      }
      return true;
    } finally {
      stopper = null;
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Ends the threads of this pool's own; a user's executor is left alone. */
  public void shutdown(boolean interrupt) {
    ended = true;
    if (own != null) {
      if (interrupt) {
        own.shutdownNow();
      } else {
        own.shutdown();
      }
    }
  }

  /** Virtual threads, which this code can only reach by reflection while it runs on Java 17 too. */
  private static final class VirtualThreads {
    private VirtualThreads() {}

    static ExecutorService perTask(String prefix) {
      try {
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        Class<?> type = Class.forName("java.lang.Thread$Builder");
        Object named = type.getMethod("name", String.class, long.class).invoke(builder, prefix, 1L);
        ThreadFactory factory = (ThreadFactory) type.getMethod("factory").invoke(named);
        return (ExecutorService)
            Executors.class
                .getMethod("newThreadPerTaskExecutor", ThreadFactory.class)
                .invoke(null, factory);
      } catch (ReflectiveOperationException e) {
        throw new IllegalStateException("Virtual threads need Java 21 or later", e);
      }
    }
  }
}
