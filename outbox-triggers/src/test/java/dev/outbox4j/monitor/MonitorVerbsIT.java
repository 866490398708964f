package dev.outbox4j.monitor;

import static dev.outbox4j.monitor.MonitorAnswer.ALIVE;
import static dev.outbox4j.monitor.MonitorAnswer.DONE;
import static dev.outbox4j.monitor.MonitorAnswer.FINISHED;
import static dev.outbox4j.monitor.MonitorAnswer.UNCHANGED;
import static dev.outbox4j.monitor.MonitorAnswer.UNKNOWN;
import static dev.outbox4j.monitor.MonitorKit.LONG;
import static dev.outbox4j.monitor.MonitorKit.SOON;
import static dev.outbox4j.monitor.MonitorStatus.CANCELED;
import static dev.outbox4j.monitor.MonitorStatus.COMPLETED;
import static dev.outbox4j.monitor.MonitorStatus.FAILED;
import static dev.outbox4j.monitor.MonitorStatus.PENDING;
import static dev.outbox4j.monitor.MonitorStatus.RUNNING;
import static dev.outbox4j.monitor.MonitorStatus.SUSPENDED;
import static dev.outbox4j.monitor.MonitorStatus.TERMINATED;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiFunction;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What each verb does to an instance of each status, and what it refuses. */
@ExtendWith(PostgresExtension.class)
class MonitorVerbsIT {
  private static final MonitorType<Json> WATCH = MonitorType.of("watch").every(LONG);
  private static final List<MonitorStatus> FINAL = List.of(COMPLETED, FAILED, CANCELED, TERMINATED);

  private final TestDatabase database;
  private final MonitorKit kit;
  private final MonitorControl control;

  MonitorVerbsIT(TestDatabase database) {
    this.database = database;
    this.kit = new MonitorKit(database, database.pool(8));
    this.control = kit.control();
  }

  @BeforeEach
  void setUp() {
    MonitorKit.migrate(database);
  }

  @AfterEach
  void stop() {
    kit.close();
  }

  /** A verb; what it answers, and what the instance is afterwards. */
  private enum Verb {
    START((control, id) -> control.start(WATCH, id, Json.NULL).answer()),
    TERMINATE((control, id) -> control.terminate(id, "reason")),
    SUSPEND((control, id) -> control.suspend(id, "reason")),
    RESUME((control, id) -> control.resume(id, "reason")),
    RESTART((control, id) -> control.restart(id, "reason")),
    RAISE((control, id) -> control.raiseEvent(id, "event", Json.NULL)),
    WAKE(MonitorControl::wake),
    WAKE_TWICE(
        (control, id) -> {
          control.wake(id);
          return control.wake(id);
        }),
    PURGE(MonitorControl::purge);

    @SuppressWarnings("ImmutableEnumChecker") // made of nothing that changes
    private final BiFunction<MonitorControl, String, MonitorAnswer> call;

    Verb(BiFunction<MonitorControl, String, MonitorAnswer> call) {
      this.call = call;
    }
  }

  static Stream<Arguments> table() {
    List<Arguments> rows = new ArrayList<>();
    // of no instance
    for (Verb verb : Verb.values()) {
      rows.add(
          verb == Verb.START
              ? arguments(null, verb, DONE, PENDING)
              : arguments(null, verb, UNKNOWN, null));
    }
    for (MonitorStatus alive : List.of(PENDING, RUNNING, SUSPENDED)) {
      boolean suspended = alive == SUSPENDED;
      rows.add(arguments(alive, Verb.START, ALIVE, alive));
      rows.add(arguments(alive, Verb.TERMINATE, DONE, TERMINATED));
      rows.add(arguments(alive, Verb.SUSPEND, suspended ? UNCHANGED : DONE, SUSPENDED));
      rows.add(
          arguments(alive, Verb.RESUME, suspended ? DONE : UNCHANGED, suspended ? RUNNING : alive));
      rows.add(arguments(alive, Verb.RESTART, ALIVE, alive));
      rows.add(arguments(alive, Verb.RAISE, DONE, alive));
      rows.add(arguments(alive, Verb.WAKE, suspended ? UNCHANGED : DONE, alive));
      rows.add(arguments(alive, Verb.WAKE_TWICE, suspended ? UNCHANGED : DONE, alive));
      rows.add(arguments(alive, Verb.PURGE, ALIVE, alive));
    }
    for (MonitorStatus ended : FINAL) {
      rows.add(arguments(ended, Verb.START, DONE, PENDING));
      rows.add(arguments(ended, Verb.TERMINATE, FINISHED, ended));
      rows.add(arguments(ended, Verb.SUSPEND, FINISHED, ended));
      rows.add(arguments(ended, Verb.RESUME, FINISHED, ended));
      rows.add(arguments(ended, Verb.RESTART, DONE, PENDING));
      rows.add(arguments(ended, Verb.RAISE, FINISHED, ended));
      rows.add(arguments(ended, Verb.WAKE, FINISHED, ended));
      rows.add(arguments(ended, Verb.WAKE_TWICE, FINISHED, ended));
      rows.add(arguments(ended, Verb.PURGE, DONE, null));
    }
    return rows.stream();
  }

  /** An instance with a state, whose next check is in an hour. */
  private void given(String id, MonitorStatus status) {
    control.start(MonitorStart.of(WATCH, Json.of("7")).id(id).firstCheckIn(LONG));
    if (status == PENDING) {
      return;
    }
    database.update(
        "update outbox_monitor set status = ?, state = '1', started_at = now(), iteration = 3,"
            + " ended_at = case when ? then now() end, due_at = case when not ? then due_at end,"
            + " outcome = case when ? = 'completed' then 'condition_met' end where id = ?",
        status.name().toLowerCase(Locale.ROOT),
        status.isFinished(),
        status.isFinished(),
        status.name().toLowerCase(Locale.ROOT),
        id);
    if (status.isFinished()) {
      database.update(
          "delete from outbox where id = (select message_id from outbox_monitor where id = ?)", id);
    }
  }

  @ParameterizedTest
  @MethodSource("table")
  void doesWhatTheTableSays(
      @Nullable MonitorStatus status,
      Verb verb,
      MonitorAnswer answer,
      @Nullable MonitorStatus after) {
    if (status != null) {
      given("x", status);
    }
    List<String> before = whole();
    boolean wakes = verb == Verb.WAKE || verb == Verb.WAKE_TWICE;
    boolean sleeps = !wakes && verb != Verb.RAISE;

    assertThat(verb.call.apply(control, "x")).isEqualTo(answer);

    Optional<MonitorInstance> found = control.get("x");
    assertThat(found.map(MonitorInstance::status)).isEqualTo(Optional.ofNullable(after));
    if (answer != DONE) {
      assertThat(whole()).as("nothing has changed").isEqualTo(before);
    }
    boolean alive = after != null && !after.isFinished();
    assertThat(kit.wakes()).as("who is alive has one message").isEqualTo(alive ? 1 : 0);
    if (alive) {
      assertThat(
              database.count(
                  "outbox o join outbox_monitor m on m.message_id = o.id where m.id = 'x'"))
          .isEqualTo(1);
    }
    if (wakes && answer == DONE) {
      assertThat(database.count("outbox where available_at <= now()")).isEqualTo(1);
    } else if (sleeps && alive && status != null && !status.isFinished()) {
      assertThat(database.count("outbox where available_at > now()")).isEqualTo(1);
    }
    if (found.isPresent() && after == PENDING && status != PENDING) {
      assertThat(found.get().iterations()).isZero();
      assertThat(found.get().state()).isEmpty();
      assertThat(found.get().endedAt()).isEmpty();
      assertThat(found.get().input()).contains(verb == Verb.START ? Json.NULL : Json.of("7"));
    }
  }

  @ParameterizedTest
  @EnumSource(MonitorStatus.class)
  void isFoundByItsStatusAndByNoOther(MonitorStatus status) {
    given("x", status);
    List<String> before = whole();
    for (MonitorStatus asked : MonitorStatus.values()) {
      assertThat(control.query(MonitorQuery.all().status(asked)).instances())
          .as("those that are %s", asked)
          .extracting(MonitorInstance::id)
          .isEqualTo(asked == status ? List.of("x") : List.of());
    }
    assertThat(control.query(MonitorQuery.all()).instances())
        .singleElement()
        .satisfies(found -> assertThat(found.status()).isEqualTo(status));
    assertThat(whole()).as("to look changes nothing").isEqualTo(before);
  }

  private List<String> whole() {
    List<String> rows =
        new ArrayList<>(
            database.list(String.class, "select m::text from outbox_monitor m order by 1"));
    rows.addAll(
        database.list(String.class, "select e::text from outbox_monitor_event e order by 1"));
    rows.addAll(
        database.list(String.class, "select id || ' ' || available_at from outbox order by 1"));
    return rows;
  }

  /** A wake that came twice, as of a dead letter that somebody has put back. */
  @ParameterizedTest
  @EnumSource(MonitorStatus.class)
  void aDuplicateWakeChangesNothing(MonitorStatus status) {
    given("x", status);
    List<String> before = whole();
    database.update(
        "insert into outbox (queue, type, headers, payload) values ('monitors.shop', 'watch',"
            + " '{\"monitor-id\": \"x\", \"monitor-application\": \"shop\"}', '')");
    List<MonitorEvents.Dropped> dropped = new CopyOnWriteArrayList<>();
    List<String> checked = new CopyOnWriteArrayList<>();
    kit.start(
        kit.builder()
            .events(
                new MonitorEvents() {
                  @Override
                  public void dropped(String application, String type, String id, Dropped why) {
                    dropped.add(why);
                  }
                })
            .on(
                WATCH,
                call -> {
                  checked.add(call.id());
                  return MonitorResult.done();
                }));

    await().atMost(SOON).until(() -> !dropped.isEmpty() && whole().size() == before.size());
    assertThat(whole()).isEqualTo(before);
    assertThat(dropped).containsExactly(MonitorEvents.Dropped.STALE_WAKE);
    assertThat(checked).isEmpty();
  }

  /** Its check is over by then, whatever the instance is: another node was faster, or a verb. */
  @ParameterizedTest
  @EnumSource(MonitorStatus.class)
  void aLateResultChangesNothing(MonitorStatus status) throws Exception {
    List<MonitorEvents.Dropped> dropped = new CopyOnWriteArrayList<>();
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    kit.start(
        kit.builder()
            .events(
                new MonitorEvents() {
                  @Override
                  public void dropped(String application, String type, String id, Dropped why) {
                    dropped.add(why);
                  }
                })
            .on(
                WATCH,
                call -> {
                  running.countDown();
                  go.await();
                  return MonitorResult.done(Json.of("1"), MonitorKit.alert("late"));
                }));
    control.start(WATCH, "x", Json.NULL);
    running.await();
    becomes(status);
    List<String> before = ofInstances();
    go.countDown();

    await().atMost(SOON).until(() -> !dropped.isEmpty());
    assertThat(ofInstances()).isEqualTo(before);
    assertThat(dropped).containsExactly(MonitorEvents.Dropped.LATE_RESULT);
    assertThat(kit.published("alerts")).isEmpty();
  }

  /** One that is alive has another execution or another check by now, and another message. */
  private void becomes(MonitorStatus status) {
    long other =
        database.one(
            Long.class,
            "insert into outbox (queue, type, headers, payload, available_at)"
                + " values ('monitors.shop', 'watch', '{\"monitor-id\": \"x\"}', '',"
                + " now() + interval '1 hour') returning id");
    database.update(
        "update outbox_monitor set status = ?, ended_at = case when ? then now() end,"
            + " execution = execution + case when ? then 1 else 0 end,"
            + " iteration = iteration + case when ? then 1 else 0 end,"
            + " message_id = case when ? then message_id else ? end",
        status.name().toLowerCase(Locale.ROOT),
        status.isFinished(),
        status == PENDING,
        status == RUNNING || status == SUSPENDED,
        status.isFinished(),
        other);
  }

  private List<String> ofInstances() {
    List<String> rows =
        new ArrayList<>(database.list(String.class, "select m::text from outbox_monitor m"));
    rows.addAll(
        database.list(String.class, "select e::text from outbox_monitor_event e order by e.id"));
    return rows;
  }

  /** What a result finds that comes after somebody has changed the instance. */
  @ParameterizedTest
  @ValueSource(strings = {"terminated", "restarted", "purged", "replaced"})
  void aResultThatComesBehindAVerbChangesNothing(String change) throws Exception {
    List<MonitorEvents.Dropped> dropped = new CopyOnWriteArrayList<>();
    List<Long> executions = new CopyOnWriteArrayList<>();
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    kit.start(
        kit.builder()
            .events(
                new MonitorEvents() {
                  @Override
                  public void dropped(String application, String type, String id, Dropped why) {
                    dropped.add(why);
                  }
                })
            .on(
                WATCH,
                call -> {
                  executions.add(call.execution());
                  if (executions.size() > 1) {
                    return MonitorResult.again();
                  }
                  running.countDown();
                  go.await();
                  return MonitorResult.done(Json.of("1"), MonitorKit.alert("late"));
                }));
    control.start(WATCH, "x", Json.NULL);
    running.await();
    control.terminate("x", "reason");
    switch (change) {
      case "restarted" -> control.restart("x", "reason");
      case "purged" -> control.purge("x");
      case "replaced" -> control.start(WATCH, "x", Json.NULL);
      default -> {}
    }
    go.countDown();

    await().atMost(SOON).until(() -> dropped.contains(MonitorEvents.Dropped.LATE_RESULT));
    assertThat(kit.published("alerts")).isEmpty();
    Optional<MonitorStatus> status = control.get("x").map(MonitorInstance::status);
    switch (change) {
      case "terminated" -> assertThat(status).contains(TERMINATED);
      case "purged" -> assertThat(status).isEmpty();
      default -> kit.awaitInstance("x", now -> now.iterations() == 1 && now.status() == RUNNING);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        " ",
        ".",
        "..",
        "@x",
        "a/b",
        "a\\b",
        "a#b",
        "a?b",
        "a\nb",
        "a\u0000b",
        "a\uD800b"
      })
  void anIdThatNoInstanceCanHaveIsRefusedByEachVerb(String id) {
    given("x", RUNNING);
    List<String> before = whole();
    for (Verb verb : Verb.values()) {
      assertThatThrownBy(() -> verb.call.apply(control, id))
          .as(verb.name())
          .isInstanceOf(IllegalArgumentException.class);
    }
    assertThatThrownBy(() -> control.get(id)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> control.history(id, 1)).isInstanceOf(IllegalArgumentException.class);
    assertThat(whole()).isEqualTo(before);
  }

  /** A DELETE of it would go elsewhere. */
  @Test
  void anIdThatIsAStepOfAPathIsRefusedWithReason() {
    for (String id : List.of(".", "..")) {
      String refusal =
          " is '%s', which has another meaning in the path of a URI; add something to it"
              .formatted(id);
      assertThatThrownBy(() -> control.start(WATCH, id, Json.NULL))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("instance id" + refusal);
      assertThatThrownBy(() -> MonitorStart.of(WATCH, Json.NULL).parent(id))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("parent" + refusal);
    }
    assertThat(control.start(WATCH, "...", Json.NULL).started()).isTrue();
    assertThat(control.query(MonitorQuery.all().idPrefix("..")).instances()).hasSize(1);
  }

  @Test
  void anIdMayHave256CharactersOfAnyScript() {
    String id = "ü".repeat(255) + "漢";
    assertThat(control.start(WATCH, id, Json.NULL).started()).isTrue();
    assertThat(control.get(id)).isPresent();
    assertThatThrownBy(() -> control.start(WATCH, id + "x", Json.NULL))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("has 257 characters; it may have 256");
  }

  @Test
  void whatIsNoJsonOrTooLargeIsRefusedAndTheInstanceUnharmed() {
    given("x", RUNNING);
    List<String> before = whole();
    Json large = Json.of("\"" + "x".repeat(Json.MAX_BYTES) + "\"");
    for (String text : List.of("{", "nul", "{\"a\":}", "1 2", "'a'")) {
      assertThatThrownBy(() -> control.raiseEvent("x", "e", Json.of(text)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("the payload is no JSON; write it as JSON");
      assertThatThrownBy(() -> control.start(WATCH, "y", Json.of(text)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("the input is no JSON; write it as JSON");
    }
    assertThatThrownBy(() -> control.raiseEvent("x", "e", large))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("the payload has 262146 bytes; it may have 262144");
    assertThatThrownBy(() -> control.start(WATCH, "y", large))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> control.raiseEvent("x", "e", 7L))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("there is no codec");
    assertThatThrownBy(() -> control.terminate("x", " "))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> control.terminate("x", "x".repeat(2_001)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("2001 bytes");
    assertThat(whole()).isEqualTo(before);
  }

  @Test
  void jsonIsKeptToTheByte() {
    String odd = "{ \"b\" : 1.0, \"a\":[1e400 ],\"b\": \"\\u0000\" }";
    control.start(WATCH, "x", Json.of(odd));
    assertThat(kit.get("x").input().orElseThrow().text()).isEqualTo(odd);
  }

  @Test
  void aRandomIdIsGiven() {
    StartedMonitor first = control.start(WATCH, Json.NULL);
    StartedMonitor second = control.start(WATCH, Json.NULL);
    assertThat(first.id()).isNotEqualTo(second.id()).hasSize(36);
    assertThat(second.execution()).isGreaterThan(first.execution());
  }

  /** A node that does something before it sends a text for the first time. */
  private MonitorKit before(String text, Runnable action) {
    AtomicBoolean done = new AtomicBoolean();
    CountingDataSource source = new CountingDataSource(database.pool(8));
    source.beforeEach(
        sql -> {
          if (sql.contains(text) && done.compareAndSet(false, true)) {
            action.run();
          }
        });
    return new MonitorKit(database, source);
  }

  @Test
  void aResumeBetweenTheReadAndTheEndOfAWakeIsNotLost() {
    AtomicInteger repaired = new AtomicInteger();
    AtomicReference<@Nullable MonitorAnswer> resumed = new AtomicReference<>();
    try (MonitorKit node =
        before("set message_id = null", () -> resumed.set(control.resume("x", "go on")))) {
      control.start(WATCH, "x", Json.NULL);
      control.suspend("x", "wait");
      node.start(
          node.builder()
              .events(
                  new MonitorEvents() {
                    @Override
                    public void repaired(String application, int instances) {
                      repaired.addAndGet(instances);
                    }
                  })
              .on(WATCH, call -> MonitorResult.done()));

      kit.awaitStatus("x", COMPLETED);

      assertThat(resumed).hasValue(DONE);
      assertThat(repaired).as("no look had to find it").hasValue(0);
    }
  }

  @Test
  void aSuspendBetweenTheReadAndTheFirstCheckHolds() {
    AtomicInteger calls = new AtomicInteger();
    AtomicReference<@Nullable MonitorAnswer> suspended = new AtomicReference<>();
    try (MonitorKit node =
        before("set status = 'running'", () -> suspended.set(control.suspend("x", "wait")))) {
      control.start(WATCH, "x", Json.NULL);
      node.start(
          WATCH,
          call -> {
            calls.incrementAndGet();
            return MonitorResult.done();
          });

      await().atMost(SOON).until(() -> suspended.get() != null && kit.wakes() == 0);

      assertThat(suspended).hasValue(DONE);
      assertThat(calls).hasValue(0);
      assertThat(kit.get("x").status()).isEqualTo(SUSPENDED);
    }
  }

  @Test
  void whoeverStartsAnIdAtTheSameTimeStartsItOnce() throws Exception {
    try (Connection other = database.plain().getConnection()) {
      other.setAutoCommit(false);
      MonitorStart start = MonitorStart.of(WATCH, Json.NULL).id("x");
      assertThat(control.start(other, start).started()).isTrue();
      Thread committing =
          new Thread(
              () -> {
                await()
                    .atMost(SOON)
                    .until(
                        () ->
                            database.count(
                                    "pg_stat_activity where datname = current_database()"
                                        + " and wait_event_type = 'Lock'")
                                > 0);
                try {
                  other.commit();
                } catch (SQLException e) {
                  throw new IllegalStateException(e);
                }
              });
      committing.start();
      StartedMonitor second = control.start(start);
      committing.join();
      assertThat(second.answer()).isEqualTo(ALIVE);
      assertThat(second.execution()).isEqualTo(kit.get("x").execution());
    }
    assertThat(kit.wakes()).isEqualTo(1);
  }

  @Test
  void aVerbWaitsForALockedRowNoLongerThanItSays() throws Exception {
    given("x", RUNNING);
    given("y", RUNNING);
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger.createStatement().execute("select 1 from outbox_monitor where id = 'x' for update");
      assertThatThrownBy(() -> control.terminate("x", "reason"))
          .isInstanceOf(OutboxStoreException.class)
          .satisfies(e -> assertThat(((OutboxStoreException) e).sqlState()).contains("55P03"));
      assertThat(control.terminate("y", "reason")).isEqualTo(DONE);
      stranger.rollback();
    }
    assertThat(control.terminate("x", "reason")).isEqualTo(DONE);
  }

  @Test
  void aLockedMessageHangsNoVerb() throws Exception {
    for (String id : List.of("t", "w", "r")) {
      given(id, RUNNING);
    }
    database.update("update outbox_monitor set waits_for = '{e}'");
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger.createStatement().execute("select 1 from outbox for update");
      assertThat(control.terminate("t", "reason")).isEqualTo(DONE);
      assertThat(control.wake("w")).isEqualTo(DONE);
      assertThat(control.raiseEvent("r", "e", Json.NULL)).isEqualTo(DONE);
      stranger.rollback();
    }
    assertThat(database.list(String.class, "select id from outbox_monitor where woken order by id"))
        .as("to be woken by the next look")
        .containsExactly("r", "w");
  }

  @Test
  void theHistoryTellsWhatPeopleDid() {
    given("x", RUNNING);
    control.suspend("x", "holiday");
    control.resume("x", "back");
    control.raiseEvent("x", "news", Json.of("{\"a\":1}"));
    control.wake("x");
    control.terminate("x", "enough");
    control.restart("x", "again");

    List<HistoryEntry> history = control.history("x", 100);
    assertThat(history)
        .extracting(HistoryEntry::kind)
        .containsExactly(
            HistoryEntry.Kind.RESTARTED,
            HistoryEntry.Kind.TERMINATED,
            HistoryEntry.Kind.WOKEN,
            HistoryEntry.Kind.EVENT,
            HistoryEntry.Kind.RESUMED,
            HistoryEntry.Kind.SUSPENDED,
            HistoryEntry.Kind.STARTED);
    assertThat(history.get(3).name()).contains("news");
    assertThat(history.get(3).detail()).contains("{\"a\":1}");
    assertThat(history.get(5).detail()).contains("holiday");
    assertThat(history.get(0).execution()).isGreaterThan(history.get(1).execution());
    assertThat(control.history("x", 2)).hasSize(2);
    assertThat(control.history("nobody", 2)).isEmpty();
  }

  @Test
  void eventsOfAnotherExecutionAreNotSeen() {
    given("x", RUNNING);
    control.raiseEvent("x", "old", Json.NULL);
    control.terminate("x", "enough");
    control.restart("x", "again");
    List<String> seen = new CopyOnWriteArrayList<>();
    kit.start(
        WATCH,
        call -> {
          call.events().forEach(event -> seen.add(event.name()));
          return MonitorResult.done();
        });
    kit.awaitStatus("x", COMPLETED);
    assertThat(seen).isEmpty();
  }
}
