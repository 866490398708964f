package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.SubscriberHealth.Listener;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TcpProxy;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.NotificationSource;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;
import org.slf4j.LoggerFactory;

/** Nothing falls back to polling in silence. */
@ExtendWith(PostgresExtension.class)
class ListenReportIT {
  private static final String QUEUE = "listen-report";

  private final TestDatabase database;
  private final ListAppender<ILoggingEvent> heard = new ListAppender<>();
  private final Logger log = (Logger) LoggerFactory.getLogger("dev.outbox4j");
  private final List<String> payloads = new CopyOnWriteArrayList<>();
  private EngineFixture engine;
  private TcpProxy network;

  ListenReportIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 6);
    PGSimpleDataSource direct = database.plain();
    network = new TcpProxy(direct.getServerNames()[0], direct.getPortNumbers()[0]);
    heard.start();
    log.addAppender(heard);
  }

  @AfterEach
  void tearDown() {
    engine.close();
    network.close();
    log.detachAppender(heard);
  }

  @Test
  void listenThatCannotBeSetUpIsReportedOnceWhileMessagesArePolledAndOnceWhenItWorks() {
    network.cut();
    OutboxSubscriber subscriber =
        engine.start(
            engine
                .subscriber(QUEUE)
                .listen(PgjdbcListen.on(proxied()))
                .on("t", (payload, delivery) -> {}));
    await().untilAsserted(() -> assertThat(engine.events.disconnects.get()).isGreaterThan(1));

    assertThat(subscriber.health().listener()).isEqualTo(Listener.DOWN);
    assertThat(subscriber.health().healthy()).isFalse();
    assertThat(subscriber.health().lastFailure()).get().asString().startsWith("listen: ");
    engine.publish(QUEUE, "t", 5);
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(5));
    assertThat(warnings()).hasSize(1);
    assertThat(warnings().get(0)).contains("is out: ").contains("find messages by polling");

    network.resume();
    await().until(() -> subscriber.health().listener() == Listener.UP);
    await().until(() -> subscriber.health().healthy());
    assertThat(engine.events.connects).hasValue(1);
    assertThat(warnings()).hasSize(1);
  }

  @Test
  void theLossOfASharedListenAndItsReturnAreOneLineEach() {
    NotificationSource shared = PgjdbcListen.on(proxied());
    List<OutboxSubscriber> subscribers =
        Stream.of(QUEUE, QUEUE + "-b", QUEUE + "-c")
            .map(queue -> engine.subscriber(queue).listen(shared).on("t", (body, delivery) -> {}))
            .map(engine::start)
            .toList();
    await().until(() -> subscribers.stream().allMatch(s -> s.health().listener() == Listener.UP));

    network.cut();
    await().until(() -> subscribers.stream().allMatch(s -> s.health().listener() == Listener.DOWN));
    network.resume();
    await().until(() -> subscribers.stream().allMatch(s -> s.health().listener() == Listener.UP));

    assertThat(warnings()).singleElement().asString().contains("share it (3 so far)");
    await()
        .untilAsserted(
            () ->
                assertThat(lines(Level.INFO))
                    .filteredOn(line -> line.contains("in force again"))
                    .singleElement()
                    .asString()
                    .contains("for 3 subscriber(s)"));
  }

  @Test
  void listenOnAnotherDatabaseIsReportedThoughItIsConnected() {
    OutboxSubscriber deaf =
        engine.start(
            engine
                .subscriber(QUEUE)
                .listen(PgjdbcListen.on(database.server().dataSource("postgres")))
                .on("t", (payload, delivery) -> {}));
    await().until(() -> deaf.health().listener() == Listener.UP);

    await().atMost(Duration.ofSeconds(60)).until(() -> deaf.health().listener() == Listener.DOWN);

    await().untilAsserted(() -> assertThat(warnings()).hasSize(1));
    assertThat(warnings().get(0)).contains("another database or server");
    assertThat(deaf.health().lastFailure()).get().asString().startsWith("listen: ");
    engine.publish(QUEUE, "t", 5);
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(5));
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void listenOnTheStoresDatabaseIsProvedByANotificationToItself(boolean ordered) {
    OutboxSubscriber.Builder builder =
        engine
            .subscriber(QUEUE)
            .listen(spy(PgjdbcListen.on(database.plain())))
            .on("t", (payload, delivery) -> {});
    if (ordered) {
      OrderedMigrations.of("public", "outbox", QUEUE).migrate(database.plain());
      builder.ordered();
    }
    OutboxSubscriber hearing = engine.start(builder);

    await().until(() -> payloads.stream().anyMatch(text -> text.startsWith("\u0001\u0001")));
    assertThat(hearing.health().listener()).isEqualTo(Listener.UP);
  }

  private NotificationSource spy(NotificationSource source) {
    return (channel, listener) ->
        source.listen(
            channel,
            new NotificationSource.Listener() {
              @Override
              public void connected() {
                listener.connected();
              }

              @Override
              public void notified(String payload) {
                payloads.add(payload);
                listener.notified(payload);
              }

              @Override
              public void disconnected(Throwable cause) {
                listener.disconnected(cause);
              }
            });
  }

  private PGSimpleDataSource proxied() {
    PGSimpleDataSource source = database.plain();
    source.setServerNames(new String[] {network.host()});
    source.setPortNumbers(new int[] {network.port()});
    return source;
  }

  private List<String> warnings() {
    return lines(Level.WARN);
  }

  private List<String> lines(Level least) {
    return List.copyOf(heard.list).stream()
        .filter(event -> event.getLevel().isGreaterOrEqual(least))
        .map(ILoggingEvent::getFormattedMessage)
        .filter(message -> message.contains("LISTEN "))
        .toList();
  }
}
