package dev.outbox4j.internal.life;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxException;
import dev.outbox4j.SubscriberState;
import dev.outbox4j.testing.CapturedLogs;
import java.lang.ref.WeakReference;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The order of starts and stops, and who waits for whom. */
class LifecycleTest {
  private final Lifecycle<Recorded> lifecycle = new Lifecycle<>("orders", false);
  private final List<String> steps = new CopyOnWriteArrayList<>();

  private class Recorded implements Lifecycle.Run {
    @Override
    public void start() {
      steps.add("start");
    }

    @Override
    public boolean drain() {
      steps.add("drain");
      return true;
    }

    @Override
    public void stopped() {
      steps.add("stopped");
    }
  }

  @Test
  void startsOnceAndAgainAfterAStop() {
    assertThat(lifecycle.start(Recorded::new)).isTrue();
    assertThat(lifecycle.start(Recorded::new)).isFalse();
    assertThat(lifecycle.state()).isEqualTo(SubscriberState.RUNNING);
    lifecycle.stop();
    lifecycle.stop();
    assertThat(lifecycle.state()).isEqualTo(SubscriberState.STOPPED);
    assertThat(lifecycle.start(Recorded::new)).isTrue();
    assertThat(steps).containsExactly("start", "drain", "stopped", "start");
  }

  @Test
  void aRunThatCannotStartHasEnded() {
    Recorded broken =
        new Recorded() {
          @Override
          public void start() {
            throw new IllegalStateException("no");
          }
        };
    assertThatThrownBy(() -> lifecycle.start(() -> broken)).hasMessage("no");
    assertThat(lifecycle.state()).isEqualTo(SubscriberState.STOPPED);
    assertThat(lifecycle.run()).isSameAs(broken);
    assertThat(steps).containsExactly("stopped");
  }

  @Test
  void aSecondStopWaitsForTheFirstAndAStartMeanwhileIsRefused() throws Exception {
    CountDownLatch draining = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    lifecycle.start(
        () ->
            new Recorded() {
              @Override
              public boolean drain() {
                draining.countDown();
                try {
                  go.await();
                } catch (InterruptedException e) {
                  throw new IllegalStateException(e);
                }
                return super.drain();
              }
            });
    CompletableFuture<Void> first = CompletableFuture.runAsync(lifecycle::stop);
    draining.await();
    Thread second = new Thread(lifecycle::stop);
    second.start();
    await().until(() -> second.getState() == Thread.State.WAITING);
    assertThatThrownBy(() -> lifecycle.start(Recorded::new))
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("'orders' is draining");
    go.countDown();
    first.get(10, TimeUnit.SECONDS);
    second.join(10_000);
    assertThat(second.isAlive()).isFalse();
    assertThat(steps).containsExactly("start", "drain", "stopped");
  }

  @Test
  void anObserverOfTheStopMayCallItAndDoesNotWaitForItself() {
    lifecycle.start(
        () ->
            new Recorded() {
              @Override
              public boolean drain() {
                lifecycle.stop();
                return super.drain();
              }
            });
    lifecycle.stop();
    assertThat(steps).containsExactly("start", "drain", "stopped");
  }

  @Test
  void aStopThatLeftSomethingBehindSaysSo() {
    try (CapturedLogs logs = new CapturedLogs()) {
      lifecycle.start(Recorded::new);
      lifecycle.stop();
      assertThat(logs.lines())
          .anyMatch(line -> line.matches(".*\\[orders] stopped after \\d{1,4} ms"))
          .noneMatch(line -> line.contains("not everything"));
      lifecycle.start(
          () ->
              new Recorded() {
                @Override
                public boolean drain() {
                  return false;
                }
              });
      lifecycle.stop();
      assertThat(logs.lines())
          .anyMatch(line -> line.contains("not everything in flight was finished"));
    }
  }

  @Test
  void whatStopsOnShutdownIsHeldByItsHookWhileItRuns() {
    WeakReference<Lifecycle<Recorded>> running = started(true);
    System.gc();
    Lifecycle<Recorded> held = running.get();
    assertThat(held).isNotNull();
    held.stop();

    awaitGone(started(false));
  }

  @Test
  void whatHasStoppedIsNotHeldByTheJvm() {
    WeakReference<Lifecycle<Recorded>> stopped = started(true);
    stop(stopped);

    awaitGone(stopped);
  }

  private WeakReference<Lifecycle<Recorded>> started(boolean stopOnShutdown) {
    Lifecycle<Recorded> started = new Lifecycle<>("orders", stopOnShutdown);
    started.start(Recorded::new);
    return new WeakReference<>(started);
  }

  private static void stop(WeakReference<Lifecycle<Recorded>> started) {
    Lifecycle<Recorded> running = started.get();
    assertThat(running).isNotNull();
    running.stop();
  }

  private static void awaitGone(WeakReference<?> reference) {
    await()
        .untilAsserted(
            () -> {
              System.gc();
              assertThat(reference.get()).isNull();
            });
  }
}
