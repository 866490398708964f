package dev.outbox4j.postgres.notify;

import static dev.outbox4j.postgres.notify.RecordingListener.DOWN;
import static dev.outbox4j.postgres.notify.RecordingListener.UP;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.postgres.testing.TcpProxy;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.NotificationSource.Subscription;
import java.time.Duration;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What each source promises, with the faults of server and network. */
abstract class ListenFaultContract extends ListenContract {
  private static final Duration PROBE_INTERVAL = Duration.ofMillis(300);
  private static final Duration PROBE_TIMEOUT = Duration.ofMillis(500);
  private static final Duration CLOSE_LIMIT = Duration.ofMillis(2_500);

  private final TcpProxy proxy;

  ListenFaultContract(TestDatabase database) {
    super(database);
    this.proxy = new TcpProxy(database.server().host(), database.server().port());
  }

  @AfterEach
  void resumeNetwork() {
    proxy.resume();
  }

  @Test
  void noticesAtOnceThatTheServerEndedTheSessionAndListensAgain() {
    RecordingListener listener = listening(source(), channel("a"));
    for (int round = 1; round <= 3; round++) {
      int before = listener.changes().size();
      terminateBackends();
      await()
          .atMost(Duration.ofSeconds(5))
          .untilAsserted(() -> assertThat(listener.changes()).hasSize(before + 2));
    }
    assertThat(listener.changes()).containsExactly(UP, DOWN, UP, DOWN, UP, DOWN, UP);
    assertThat(listener.causes()).hasSize(3);
    fence(listener, channel("a"));
    assertThat(backends()).isEqualTo(1);
  }

  @Test
  void tellsAllListenersOfAChannelOfAnOutage() {
    NotificationSource source = proxied();
    RecordingListener first = listening(source, channel("a"));
    RecordingListener second = listening(source, channel("a"));
    proxy.cut();
    awaitDown(first);
    awaitDown(second);

    RecordingListener late = new RecordingListener();
    listen(source, channel("a"), late);
    await().atMost(SOON).untilAsserted(() -> assertThat(late.changes()).containsExactly(DOWN));

    proxy.resume();
    await().atMost(SOON).untilAsserted(() -> assertThat(late.changes()).containsExactly(DOWN, UP));
    await()
        .atMost(SOON)
        .untilAsserted(() -> assertThat(second.changes()).containsExactly(UP, DOWN, UP));
    assertThat(first.changes()).containsExactly(UP, DOWN, UP);
    fence(late, channel("a"));
    assertThat(backends()).isEqualTo(1);
  }

  @Test
  void listensOnceAServerThatWasNotThereComes() {
    proxy.cut();
    RecordingListener listener = new RecordingListener();
    listen(proxied(), channel("a"), listener);
    await().atMost(SOON).untilAsserted(() -> assertThat(listener.count(DOWN)).isGreaterThan(1));
    assertThat(listener.changes()).containsExactly(DOWN);

    proxy.resume();
    await()
        .atMost(SOON)
        .untilAsserted(() -> assertThat(listener.changes()).containsExactly(DOWN, UP));
    fence(listener, channel("a"));
  }

  @Test
  void findsASilentConnectionByTheProbe() {
    RecordingListener listener = listening(probing(), channel("a"));
    proxy.blackhole();
    awaitDown(listener);
    assertThat(listener.changes()).containsExactly(UP, DOWN);

    proxy.resume();
    await()
        .atMost(Duration.ofSeconds(25))
        .untilAsserted(() -> assertThat(listener.changes()).containsExactly(UP, DOWN, UP));
    fence(listener, channel("a"));
    await().atMost(SOON).untilAsserted(() -> assertThat(backends()).isEqualTo(1));
  }

  @Test
  void staysConnectedWhileProbesAreAnswered() {
    RecordingListener listener = listening(probing(), channel("a"));
    String lastStatement =
        "select pid || ' ' || query_start from pg_stat_activity"
            + " where datname = current_database() and application_name = 'outbox4j-listen'";
    for (int probes = 0; probes < 2; probes++) {
      String before = database.one(String.class, lastStatement);
      await().atMost(SOON).until(() -> !database.one(String.class, lastStatement).equals(before));
    }
    fence(listener, channel("a"));
    assertThat(listener.changes()).containsExactly(UP);
  }

  @Test
  void findsAConnectionThatFallsSilentInTheMiddleOfANotification() {
    RecordingListener listener =
        listening(
            source(Endpoint.of(database).through(proxy), Duration.ofSeconds(1), PROBE_TIMEOUT),
            channel("a"));
    proxy.blackholeAfter(100);
    notify(channel("a"), "x".repeat(7_000));
    await()
        .atMost(Duration.ofSeconds(25))
        .untilAsserted(() -> assertThat(listener.changes()).containsExactly(UP, DOWN));
    assertThat(listener.payloads()).isEmpty();
  }

  @Test
  void closesInTimeWhenTheServerIsAway() {
    RecordingListener listener = new RecordingListener();
    Subscription subscription = listen(proxied(), channel("a"), listener);
    awaitUp(listener);
    proxy.cut();
    awaitDown(listener);
    assertClosesInTime(subscription, listener);
  }

  @Test
  void closesInTimeWhenTheNetworkIsSilent() {
    RecordingListener listener = new RecordingListener();
    Subscription subscription = listen(proxied(), channel("a"), listener);
    awaitUp(listener);
    proxy.blackhole();
    assertClosesInTime(subscription, listener);
  }

  @Test
  void closesInTimeWhileAProbeIsUnanswered() {
    RecordingListener listener = new RecordingListener();
    Subscription subscription =
        listen(
            source(
                Endpoint.of(database).through(proxy),
                Duration.ofMillis(100),
                Duration.ofMinutes(1)),
            channel("a"),
            listener);
    awaitUp(listener);
    proxy.blackhole();
    Thread owner = ownerThread();
    await()
        .atMost(SOON)
        .until(
            () ->
                Arrays.stream(owner.getStackTrace())
                    .anyMatch(frame -> frame.getMethodName().equals("execute")));
    assertClosesInTime(subscription, listener);
  }

  @Test
  void closesInTimeWhileTheServerDoesNotAnswerAConnect() {
    proxy.blackhole();
    RecordingListener listener = new RecordingListener();
    Subscription subscription = listen(proxied(), channel("a"), listener);
    await().atMost(SOON).until(() -> proxy.connections() == 1);
    assertClosesInTime(subscription, listener);
    assertThat(listener.size()).isZero();
  }

  @Test
  void reportsARefusedLoginWithoutItsPassword() {
    RecordingListener listener = new RecordingListener();
    listen(source(Endpoint.of(database).as("nobody_here", "s3cret-pass")), channel("a"), listener);
    awaitDown(listener);
    for (Throwable t = listener.causes().get(0); t != null; t = t.getCause()) {
      assertThat(t.toString()).doesNotContain("s3cret-pass").doesNotContain("://");
    }
    assertThat(listener.causes().get(0)).hasMessageContaining("nobody_here");
  }

  private Thread ownerThread() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals("outbox-listen-" + channel("a")))
        .findAny()
        .orElseThrow();
  }

  private void assertClosesInTime(Subscription subscription, RecordingListener listener) {
    assertTakesLessThan(CLOSE_LIMIT, subscription::close);
    int told = listener.size();
    assertThat(threads()).doesNotContain("outbox-listen-" + channel("a"));
    proxy.resume();
    await().atMost(SOON).untilAsserted(() -> assertThat(backends()).isZero());
    assertThat(listener.size()).isEqualTo(told);
  }

  private static void awaitDown(RecordingListener listener) {
    await().atMost(SOON).untilAsserted(() -> assertThat(listener.changes()).endsWith(DOWN));
  }

  private NotificationSource proxied() {
    return source(Endpoint.of(database).through(proxy));
  }

  private NotificationSource probing() {
    return source(Endpoint.of(database).through(proxy), PROBE_INTERVAL, PROBE_TIMEOUT);
  }
}
