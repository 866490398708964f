package dev.outbox4j.postgres.notify.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.spi.NotificationSource.Listener;
import dev.outbox4j.spi.NotificationSource.Subscription;
import java.net.ConnectException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

class ListenHubTest {

  /** As if no server listened. */
  private static final class Nowhere implements ListenDriver {
    @Override
    public String name() {
      return "nowhere";
    }

    @Override
    public ListenConnection open(Consumer<String> onNotification, Duration limit)
        throws ConnectException {
      throw new ConnectException("refused");
    }
  }

  @Test
  void aChannelForWhichNoThreadWasToBeHadCanBeListenedToLater() throws InterruptedException {
    AtomicBoolean exhausted = new AtomicBoolean(true);
    ListenHub hub =
        new ListenHub(
            new Nowhere(),
            Probe.DEFAULT,
            task ->
                new Thread(task) {
                  @Override
                  public synchronized void start() {
                    if (exhausted.get()) {
                      throw new OutOfMemoryError("unable to create native thread");
                    }
                    super.start();
                  }
                });
    CountDownLatch told = new CountDownLatch(1);
    Listener listener = listener(told);
    assertThatThrownBy(() -> hub.listen("channel", listener)).isInstanceOf(OutOfMemoryError.class);

    exhausted.set(false);
    Subscription subscription = hub.listen("channel", listener);
    assertThat(told.await(20, TimeUnit.SECONDS)).isTrue(); // by a thread that lives
    subscription.close();
  }

  @Test
  void aListenerThatCouldNotBeGreetedDoesNotKeepTheChannelOpen() throws InterruptedException {
    AtomicBoolean exhausted = new AtomicBoolean();
    List<Thread> threads = new CopyOnWriteArrayList<>();
    ListenHub hub =
        new ListenHub(
            new Nowhere(),
            Probe.DEFAULT,
            task -> {
              if (exhausted.get()) {
                throw new OutOfMemoryError("unable to create native thread");
              }
              Thread thread = new Thread(task);
              threads.add(thread);
              return thread;
            });
    CountDownLatch told = new CountDownLatch(1);
    Subscription first = hub.listen("channel", listener(told));
    assertThat(told.await(20, TimeUnit.SECONDS)).isTrue();
    exhausted.set(true);
    Listener second = listener(new CountDownLatch(1));
    assertThatThrownBy(() -> hub.listen("channel", second)).isInstanceOf(OutOfMemoryError.class);

    first.close();
    for (Thread thread : threads) {
      thread.join(TimeUnit.SECONDS.toMillis(20));
      assertThat(thread.isAlive()).isFalse();
    }
  }

  /** What ends a connection may be anything: memory, a logger, an exception that cannot be read. */
  @Test
  void aFailureThatCannotBeToldEndsNoListening() throws InterruptedException {
    CountDownLatch attempts = new CountDownLatch(3);
    ListenDriver unreadable =
        new ListenDriver() {
          @Override
          public String name() {
            return "unreadable";
          }

          @Override
          public ListenConnection open(Consumer<String> onNotification, Duration limit) {
            attempts.countDown();
            throw new IllegalStateException() {
              @Override
              public String getMessage() {
                throw new UnsupportedOperationException("no words");
              }
            };
          }
        };
    ListenHub hub = new ListenHub(unreadable, Probe.DEFAULT, Thread::new);
    CountDownLatch told = new CountDownLatch(1);
    Subscription subscription = hub.listen("channel", listener(told));
    assertThat(told.await(20, TimeUnit.SECONDS)).isTrue();
    assertThat(attempts.await(20, TimeUnit.SECONDS)).isTrue();
    subscription.close();
  }

  private static Listener listener(CountDownLatch told) {
    return new Listener() {
      @Override
      public void connected() {}

      @Override
      public void disconnected(Throwable cause) {
        told.countDown();
      }

      @Override
      public void notified(String payload) {}
    };
  }
}
