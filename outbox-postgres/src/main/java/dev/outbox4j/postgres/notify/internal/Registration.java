package dev.outbox4j.postgres.notify.internal;

import dev.outbox4j.spi.NotificationSource.Listener;
import dev.outbox4j.spi.NotificationSource.Subscription;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One listener of a channel. Calls it from one thread at a time, never after {@link #close} has
 * returned (unless a call outlasts the close), and survives what it throws.
 */
final class Registration implements Subscription {
  private static final Logger LOG = LoggerFactory.getLogger(Registration.class);
  private static final Duration CALLBACK_LIMIT = Duration.ofSeconds(1);

  private final ListenHub hub;
  private final ListenLoop loop;
  private final Listener listener;
  private final ReentrantLock calling = new ReentrantLock();
  private final AtomicBoolean closed = new AtomicBoolean();

  // guarded by calling
  private LinkState told = LinkState.UNKNOWN;
  private boolean complained;

  Registration(ListenHub hub, ListenLoop loop, Listener listener) {
    this.hub = hub;
    this.loop = loop;
    this.listener = listener;
  }

  /**
   * Tells the listener the state of the link, if it does not know it. The state is read under the
   * lock, so that two threads that tell cannot leave the older news as the last.
   */
  void tellState() {
    call(
        () -> {
          LinkState state = loop.state();
          if (told != state) {
            told = state;
            state.tell(listener);
          }
        });
  }

  void tellNotification(String payload) {
    call(() -> listener.notified(payload));
  }

  boolean isCallingOnThisThread() {
    return calling.isHeldByCurrentThread();
  }

  private void call(Runnable callback) {
    calling.lock();
    try {
      if (!closed.get()) {
        callback.run();
      }
    } catch (RuntimeException | Error e) { // user code: it must not hurt other listeners
      complain(e);
    } finally {
      calling.unlock();
    }
  }

  private void complain(Throwable e) {
    if (complained) {
      LOG.debug("A listener of channel {} threw again", loop.channel(), e);
    } else {
      complained = true;
      LOG.warn(
          "A listener of channel {} threw; it goes on being called, and what it throws from now on is logged at DEBUG",
          loop.channel(),
          e);
    }
  }

  @Override
  public void close() {
    if (!closed.compareAndSet(false, true)) {
      return;
    }
    boolean inside = isCallingOnThisThread();
    hub.remove(this, loop, !inside);
    if (!inside) {
      awaitCallback();
    }
  }

  private void awaitCallback() {
    try {
      if (calling.tryLock(CALLBACK_LIMIT.toMillis(), TimeUnit.MILLISECONDS)) {
        calling.unlock();
      } else {
        LOG.warn(
            "A listener of channel {} was still busy {} ms after it was closed; listener methods must return quickly",
            loop.channel(),
            CALLBACK_LIMIT.toMillis());
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
