package dev.outbox4j.postgres.notify.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.spi.NotificationSource.Listener;
import dev.outbox4j.spi.NotificationSource.Subscription;
import java.net.ConnectException;
import java.time.Duration;
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
    Listener listener =
        new Listener() {
          @Override
          public void connected() {}

          @Override
          public void disconnected(Throwable cause) {
            told.countDown();
          }

          @Override
          public void notified(String payload) {}
        };
    assertThatThrownBy(() -> hub.listen("channel", listener)).isInstanceOf(OutOfMemoryError.class);

    exhausted.set(false);
    Subscription subscription = hub.listen("channel", listener);
    assertThat(told.await(20, TimeUnit.SECONDS)).isTrue(); // by a thread that lives
    subscription.close();
  }
}
