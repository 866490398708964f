package dev.outbox4j.postgres.notify;

import static dev.outbox4j.postgres.notify.RecordingListener.DOWN;
import static dev.outbox4j.postgres.notify.RecordingListener.UP;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.NotificationSource.Listener;
import dev.outbox4j.spi.NotificationSource.Subscription;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What each source promises while the server is well; {@link ListenFaultContract} has the rest. */
@ExtendWith(PostgresExtension.class)
abstract class ListenContract {
  static final Duration SOON = Duration.ofSeconds(60);
  private static final String OUR_SESSIONS =
      "from pg_stat_activity where datname = current_database()"
          + " and application_name = 'outbox4j-listen'";

  final TestDatabase database;
  private final List<Subscription> opened = new ArrayList<>();
  private final String unique = UUID.randomUUID().toString().substring(0, 8);

  ListenContract(TestDatabase database) {
    this.database = database;
  }

  /** Returns a source with its default probe. */
  abstract NotificationSource source(Endpoint endpoint);

  /** Returns a source with another probe. */
  abstract NotificationSource source(Endpoint endpoint, Duration interval, Duration timeout);

  @AfterEach
  void leavesNothingBehind() {
    opened.forEach(Subscription::close);
    await().atMost(SOON).untilAsserted(() -> assertThat(backends()).isZero());
    await().atMost(SOON).untilAsserted(() -> assertThat(threads()).isEmpty());
  }

  @Test
  void deliversThePayloadAfterTheCommit() throws SQLException {
    RecordingListener listener = listening(source(), channel("a"));
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      notify(connection, channel("a"), "orders");
      fence(listener, channel("a"));
      assertThat(listener.payloads()).containsExactly("fence");

      connection.commit();
      await()
          .atMost(SOON)
          .untilAsserted(() -> assertThat(listener.payloads()).containsExactly("fence", "orders"));
    }
  }

  @Test
  void deliversNothingAfterARollback() throws SQLException {
    RecordingListener listener = listening(source(), channel("a"));
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      notify(connection, channel("a"), "orders");
      connection.rollback();
    }
    fence(listener, channel("a"));
    assertThat(listener.payloads()).containsExactly("fence");
  }

  @Test
  void deliversAThousandNotificationsInOrder() throws SQLException {
    RecordingListener listener = listening(source(), channel("a"));
    List<String> sent = IntStream.range(0, 1_000).mapToObj(i -> "p" + i).toList();
    try (Connection connection = database.plain().getConnection()) {
      for (String payload : sent) {
        notify(connection, channel("a"), payload);
      }
    }
    await().atMost(SOON).untilAsserted(() -> assertThat(listener.payloads()).isEqualTo(sent));
  }

  @Test
  void deliversEmptyAndVeryLongPayloads() {
    RecordingListener listener = listening(source(), channel("a"));
    String longest = "ä".repeat(3_999);
    notify(channel("a"), "");
    notify(channel("a"), longest);
    await()
        .atMost(SOON)
        .untilAsserted(() -> assertThat(listener.payloads()).containsExactly("", longest));
  }

  @Test
  void keepsChannelsApart() {
    NotificationSource source = source();
    RecordingListener a = listening(source, channel("a"));
    RecordingListener b = listening(source, channel("b"));
    notify(channel("a"), "for a");
    notify(channel("b"), "for b");
    await()
        .atMost(SOON)
        .untilAsserted(
            () -> {
              assertThat(a.payloads()).containsExactly("for a");
              assertThat(b.payloads()).containsExactly("for b");
            });
    assertThat(backends()).isEqualTo(2);
  }

  @Test
  void sharesOneConnectionAmongTheListenersOfAChannelUntilTheLastLeaves() {
    NotificationSource source = source();
    RecordingListener first = new RecordingListener();
    Subscription firstSubscription = listen(source, channel("a"), first);
    awaitUp(first);
    RecordingListener second = listening(source, channel("a"));
    assertThat(backends()).isEqualTo(1);
    assertThat(first.count(UP)).isEqualTo(1);

    notify(channel("a"), "for both");
    await()
        .atMost(SOON)
        .untilAsserted(
            () -> {
              assertThat(first.payloads()).containsExactly("for both");
              assertThat(second.payloads()).containsExactly("for both");
            });

    firstSubscription.close();
    int told = first.size();
    fence(second, channel("a"));
    assertThat(first.size()).isEqualTo(told);
    assertThat(second.changes()).containsExactly(UP);
    assertThat(backends()).isEqualTo(1);
  }

  @Test
  void tellsAListenerThatComesLateThatTheConnectionIsUp() {
    NotificationSource source = source();
    listening(source, channel("a"));
    AtomicReference<Thread> teller = new AtomicReference<>();
    listen(
        source,
        channel("a"),
        new Listener() {
          @Override
          public void connected() {
            teller.set(Thread.currentThread());
          }

          @Override
          public void notified(String payload) {}

          @Override
          public void disconnected(Throwable cause) {}
        });
    await().atMost(SOON).untilAsserted(() -> assertThat(teller.get()).isNotNull());
    assertThat(teller.get().getName()).startsWith("outbox-listen-" + channel("a"));
  }

  @Test
  void listensAgainAfterTheLastListenerHasLeft() {
    NotificationSource source = source();
    RecordingListener first = new RecordingListener();
    Subscription subscription = listen(source, channel("a"), first);
    awaitUp(first);
    subscription.close();

    RecordingListener second = listening(source, channel("a"));
    fence(second, channel("a"));
    assertThat(first.payloads()).isEmpty();
  }

  @Test
  void isNeverInATransaction() {
    listening(source(), channel("a"));
    assertThat(database.list(String.class, "select state " + OUR_SESSIONS)).containsExactly("idle");
  }

  @Test
  void leavesNoSessionNoThreadAndNoCallbackBehindAClose() {
    RecordingListener listener = new RecordingListener();
    Subscription subscription = listen(source(), channel("a"), listener);
    awaitUp(listener);
    assertThat(threads()).contains("outbox-listen-" + channel("a"));

    assertTakesLessThan(Duration.ofSeconds(5), subscription::close);
    int told = listener.size();
    await().atMost(SOON).untilAsserted(() -> assertThat(backends()).isZero());
    await().atMost(SOON).untilAsserted(() -> assertThat(threads()).isEmpty());
    notify(channel("a"), "too late");
    assertThat(listener.size()).isEqualTo(told);
    assertThatCode(subscription::close).doesNotThrowAnyException();
  }

  @Test
  void mayBeClosedByItsOwnCallback() throws InterruptedException {
    NotificationSource source = source();
    CountDownLatch closed = new CountDownLatch(1);
    AtomicReference<Subscription> subscription = new AtomicReference<>();
    AtomicInteger calls = new AtomicInteger();
    RecordingListener up = listening(source, channel("a"));
    subscription.set(
        listen(
            source,
            channel("a"),
            new Listener() {
              @Override
              public void connected() {}

              @Override
              public void notified(String payload) {
                calls.incrementAndGet();
                opened.get(0).close(); // so that this one is the last
                subscription.get().close();
                closed.countDown();
              }

              @Override
              public void disconnected(Throwable cause) {}
            }));
    notify(channel("a"), "close");
    assertThat(closed.await(10, TimeUnit.SECONDS)).isTrue();
    await().atMost(SOON).untilAsserted(() -> assertThat(backends()).isZero());
    assertThat(calls).hasValue(1);
    assertThat(up.changes()).containsExactly(UP);
  }

  @Test
  void closesWhileItConnects() {
    for (int i = 0; i < 20; i++) {
      Subscription subscription = listen(source(), channel("c" + i), new RecordingListener());
      assertTakesLessThan(Duration.ofSeconds(5), subscription::close);
    }
  }

  @Test
  void survivesAListenerThatThrows() {
    NotificationSource source = source();
    AtomicInteger thrown = new AtomicInteger();
    Listener bad =
        new Listener() {
          @Override
          public void connected() {
            throw fault();
          }

          @Override
          public void notified(String payload) {
            throw fault();
          }

          @Override
          public void disconnected(Throwable cause) {
            throw fault();
          }

          private AssertionError fault() {
            thrown.incrementAndGet();
            return new AssertionError("a listener's fault");
          }
        };
    listen(source, channel("a"), bad);
    RecordingListener good = listening(source, channel("a"));
    fence(good, channel("a"));
    terminateBackends();
    await()
        .atMost(SOON)
        .untilAsserted(() -> assertThat(good.changes()).containsExactly(UP, DOWN, UP));
    notify(channel("a"), "after");
    await().atMost(SOON).untilAsserted(() -> assertThat(good.payloads()).endsWith("after"));
    await().atMost(SOON).untilAsserted(() -> assertThat(thrown).hasValueGreaterThanOrEqualTo(5));
  }

  @Test
  void quotesTheChannel() {
    String hostile = "Ab \"q\" 'x' $1 ? {d} ; -- ü";
    String channel = hostile + "x".repeat(63 - hostile.getBytes(StandardCharsets.UTF_8).length);
    RecordingListener listener = listening(source(), channel);
    RecordingListener folded = listening(source(), channel.toLowerCase(Locale.ROOT));
    notify(channel, "exact");
    notify(channel.toLowerCase(Locale.ROOT), "folded");
    await()
        .atMost(SOON)
        .untilAsserted(
            () -> {
              assertThat(listener.payloads()).containsExactly("exact");
              assertThat(folded.payloads()).containsExactly("folded");
            });
  }

  @Test
  void refusesAChannelThatPostgresWouldNotKeep() {
    NotificationSource source = source();
    for (String bad : List.of("", "  ", "a\0b", "x".repeat(64), "ü".repeat(32))) {
      assertThatThrownBy(() -> source.listen(bad, new RecordingListener()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("63 bytes");
    }
  }

  @Test
  void refusesAProbeOutOfRange() {
    Endpoint endpoint = Endpoint.of(database);
    Duration second = Duration.ofSeconds(1);
    assertThatThrownBy(() -> source(endpoint, Duration.ofMillis(99), second))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("probe interval is PT0.099S; it must be PT0.1S to PT10M");
    assertThatThrownBy(() -> source(endpoint, second, Duration.ofMinutes(2)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("probe timeout is PT2M; it must be PT0.1S to PT1M");
  }

  NotificationSource source() {
    return source(Endpoint.of(database));
  }

  /** Returns a channel of this test's own. */
  String channel(String name) {
    return "t_" + unique + "_" + name;
  }

  Subscription listen(NotificationSource source, String channel, Listener listener) {
    Subscription subscription = source.listen(channel, listener);
    opened.add(subscription);
    return subscription;
  }

  /** Listens and waits until it is in force. */
  RecordingListener listening(NotificationSource source, String channel) {
    RecordingListener listener = new RecordingListener();
    listen(source, channel, listener);
    awaitUp(listener);
    return listener;
  }

  static void awaitUp(RecordingListener listener) {
    await().atMost(SOON).untilAsserted(() -> assertThat(listener.changes()).containsExactly(UP));
  }

  /** Sends one more notification and waits for it: what was to come before has come. */
  void fence(RecordingListener listener, String channel) {
    notify(channel, "fence");
    await().atMost(SOON).untilAsserted(() -> assertThat(listener.payloads()).endsWith("fence"));
  }

  void notify(String channel, String payload) {
    try (Connection connection = database.plain().getConnection()) {
      notify(connection, channel, payload);
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  static void notify(Connection connection, String channel, String payload) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement("select pg_notify(?, ?)")) {
      statement.setString(1, channel);
      statement.setString(2, payload);
      statement.execute();
    }
  }

  long backends() {
    return database.one(Long.class, "select count(*) " + OUR_SESSIONS);
  }

  void terminateBackends() {
    database.list(Boolean.class, "select pg_terminate_backend(pid) " + OUR_SESSIONS);
  }

  /** Returns the names of the live threads that belong to channels of this test. */
  List<String> threads() {
    return Thread.getAllStackTraces().keySet().stream()
        .map(Thread::getName)
        .filter(name -> name.startsWith("outbox-listen-" + channel("")))
        .toList();
  }

  static void assertTakesLessThan(Duration limit, Runnable work) {
    long start = System.nanoTime();
    work.run();
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(limit);
  }
}
