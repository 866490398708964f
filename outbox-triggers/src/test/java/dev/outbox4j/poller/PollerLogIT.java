package dev.outbox4j.poller;

import static dev.outbox4j.poller.TestPollers.ANN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.poller.TickResult.Outcome;
import dev.outbox4j.poller.internal.LogEvent;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.FaultyDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.testing.CapturedLogs;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.postgresql.ds.PGSimpleDataSource;

/** Each event is logged once, by the same keys each, and the document has them all. */
@ExtendWith(PostgresExtension.class)
class PollerLogIT {
  private static final String APPLICATION = "logs";
  private static final String SECRET = "what a column has";
  private static final Pattern LINE =
      Pattern.compile(
          "([A-Z]+) \\[[^]]+] dev\\.outbox4j\\.poller\\.Pollers - \\[pollers\\.logs] (\\w+)"
              + " application=logs poller=items token=\\d* position=\\S* rows=\\d+ attempt=\\d*"
              + " took_ms=\\d+ reason=(.*)");
  private static final Pattern DOCUMENTED =
      Pattern.compile("\\| ((?:`\\w+`(?:, )?)+) \\| ([A-Z]+) \\|.*");

  private final TestDatabase database;
  private final FaultyDataSource state;
  private final FaultyDataSource source;
  private final PollerControl control;
  private final AtomicBoolean fails = new AtomicBoolean();
  private final List<Pollers> started = new ArrayList<>();
  private CapturedLogs logs;

  PollerLogIT(TestDatabase database) {
    this.database = database;
    this.state = new FaultyDataSource(database.plain());
    this.source = new FaultyDataSource(database.plain());
    this.control =
        PollerControl.of(PostgresOutbox.on(database.plain(), database.table()), APPLICATION);
    this.logs = new CapturedLogs();
  }

  @BeforeEach
  void setUp() {
    TestPollers.setUp(database);
    TestPollers.createItems(database);
    TestPollers.insert(database, 1, 3);
    database.update("update items set name = ?", SECRET);
  }

  @AfterEach
  void stop() {
    state.heal();
    source.heal();
    started.forEach(Pollers::stop);
    logs.close();
  }

  private static Poller items() {
    return TestPollers.items().lease(Duration.ofSeconds(1));
  }

  private Pollers.Builder builder() {
    return Pollers.builder(PostgresOutbox.on(state, database.table()), APPLICATION).source(source);
  }

  private Pollers pollers(PollerHandler handler) {
    return builder().on(items(), handler).build();
  }

  /** Of a handler that fails if it is to. */
  private Pollers pollers() {
    return pollers(
        (rows, context) -> {
          if (fails.get()) {
            throw new IllegalStateException("the handler's own words");
          }
        });
  }

  private static void tick(Pollers pollers, Outcome outcome) {
    TickResult result = pollers.tick("items");
    assertThat(result.outcome()).as(result.toString()).isEqualTo(outcome);
  }

  private static void tickUntil(Pollers pollers, Outcome outcome) {
    await().until(() -> pollers.tick("items").outcome() == outcome);
  }

  /** Another node has taken it, and its lease is over. */
  private void left() {
    database.update(
        "update outbox_poller set owner = 'another', lease_until = now() - interval '1 s'");
  }

  private void steal() {
    database.update("update outbox_poller set owner = 'another', token = token + 1");
  }

  /** All lines of events so far, which have the level and the keys of each. */
  private List<String> lines(LogEvent wanted) {
    List<String> found = new ArrayList<>();
    for (String line : logs.lines()) {
      if (line.contains("[pollers.logs]")) {
        Matcher parts = LINE.matcher(line);
        assertThat(parts.matches()).as(line).isTrue();
        LogEvent event =
            Arrays.stream(LogEvent.values())
                .filter(each -> each.text().equals(parts.group(2)))
                .findAny()
                .orElseThrow(() -> new AssertionError(line));
        assertThat(parts.group(1)).as(line).isEqualTo(event.level().toString());
        assertThat(line).doesNotContain(SECRET);
        if (event == wanted) {
          found.add(line);
        }
      }
    }
    return found;
  }

  @ParameterizedTest
  @EnumSource(LogEvent.class)
  void eachEventIsLoggedOnceWithItsLevelAndTheSameKeys(LogEvent event) throws Exception {
    happens(event);

    assertThat(lines(event)).hasSize(1);
    if (event == LogEvent.TICK_COMPLETE) {
      assertThat(lines(event).get(0)).endsWith("reason= outcome=PROCESSED total_processed=3");
    }
  }

  private void happens(LogEvent event) throws Exception {
    switch (event) {
      case TICK_START, TICK_COMPLETE, BATCH_COMPLETE -> tick(pollers(), Outcome.PROCESSED);
      case FETCH_EMPTY -> {
        Pollers pollers = pollers();
        tick(pollers, Outcome.PROCESSED);
        tick(pollers, Outcome.EMPTY);
      }
      case LEASE_ACQUIRE_SKIPPED -> {
        Pollers pollers = pollers();
        tick(pollers, Outcome.PROCESSED);
        control.pause("items", ANN);
        tick(pollers, Outcome.PAUSED);
      }
      case LEASE_RELEASED_BY_OTHERS -> {
        Pollers pollers = pollers();
        tick(pollers, Outcome.PROCESSED);
        state.before(PollerLogIT::isRelease, this::steal);
        tick(pollers, Outcome.EMPTY);
      }
      case HANDLER_SESSION_ENDED -> sessionEnded();
      case HANDLER_SESSION_END_FAILED -> {
        Pollers pollers = builder().transactional(items(), (rows, context, own) -> {}).build();
        tick(pollers, Outcome.PROCESSED);
        left();
        state.cutBefore(sql -> sql.contains("pg_terminate_backend"));
        tick(pollers, Outcome.EMPTY);
      }
      case HANDLER_FAILED, HANDLER_RETRY -> {
        fails.set(true);
        Pollers pollers = pollers();
        tick(pollers, Outcome.FAILED);
        fails.set(false);
        tickUntil(pollers, Outcome.PROCESSED);
      }
      case POLLER_FINISHED -> {
        Pollers pollers = builder().on(items().untilNow(), (rows, context) -> {}).build();
        tickUntil(pollers, Outcome.FINISHED);
      }
      case LEASE_ACQUIRE_FAILED -> {
        state.goAway();
        tick(pollers(), Outcome.FAILED);
      }
      case CHECKPOINT_LOAD_FAILED -> {
        Pollers pollers = pollers();
        tick(pollers, Outcome.PROCESSED);
        database.update("update outbox_poller set position_side = 'NOWHERE'");
        tick(pollers, Outcome.FAILED);
      }
      case SOURCE_DESCRIPTOR_FAILED -> {
        database.update("drop table items");
        tick(pollers(), Outcome.FAILED);
      }
      case FETCH_FAILED -> {
        Pollers pollers = pollers();
        tick(pollers, Outcome.PROCESSED);
        source.goAway();
        tick(pollers, Outcome.FAILED);
      }
      case NORMALIZE_FAILED -> {
        database.update("alter table items alter version type numeric");
        database.update("update items set version = 'NaN' where id = 3");
        Poller poller =
            Poller.of(
                "items",
                Source.table("items"),
                Cursor.sequence("version").assumingThatWritersNeverOverlap(),
                Deletes.ignored());
        tick(builder().on(poller, (rows, context) -> {}).build(), Outcome.FAILED);
      }
      case COMMIT_FAILED -> tick(pollers((rows, context) -> steal()), Outcome.FAILED);
      case LEASE_RENEW_FAILED ->
          tick(
              pollers(
                  (rows, context) -> {
                    state.cutBefore(sql -> sql.contains("set lease_until ="));
                    logs.awaitLine(line -> line.contains(event.text()));
                  }),
              Outcome.PROCESSED);
      case LEASE_RELEASE_FAILED -> {
        Pollers pollers = pollers();
        tick(pollers, Outcome.PROCESSED);
        state.cutBefore(PollerLogIT::isRelease);
        tick(pollers, Outcome.FAILED);
      }
      case ROW_QUARANTINED -> {
        Pollers pollers =
            builder()
                .on(
                    items().isolateAfter(1),
                    (rows, context) -> {
                      if (TestPollers.ids(rows).contains(2)) {
                        throw new IllegalStateException("the handler's own words");
                      }
                    })
                .build();
        tick(pollers, Outcome.PROCESSED);
      }
      case ROWS_HELD_BACK -> heldBack();
      case SOURCE_WARNING -> {
        database.update("drop index items_version_id_idx");
        tick(pollers(), Outcome.PROCESSED);
      }
    }
  }

  private static boolean isRelease(String sql) {
    return sql.contains("last_success_at = clock_timestamp()") && !sql.contains("positioned_at");
  }

  private void sessionEnded() throws SQLException {
    AtomicReference<String> name = new AtomicReference<>();
    Pollers pollers =
        builder()
            .transactional(
                items(),
                (rows, context, own) -> {
                  try (ResultSet row =
                      own.createStatement().executeQuery("show application_name")) {
                    row.next();
                    name.set(row.getString(1));
                  }
                })
            .build();
    tick(pollers, Outcome.PROCESSED);
    PGSimpleDataSource ofAnother = database.plain();
    ofAnother.setApplicationName(name.get());
    try (Connection frozen = ofAnother.getConnection()) {
      frozen.setAutoCommit(false);
      frozen.createStatement().execute("lock table outbox_poller_history in row share mode");
      left();
      tickUntil(pollers, Outcome.EMPTY);
      assertThat(frozen.isValid(1)).isFalse();
    }
  }

  /** By a clock of the source that goes by when the test says so. */
  private void heldBack() throws SQLException {
    database.update("create schema if not exists clock");
    database.update("create table if not exists clock.hand (instant timestamptz)");
    database.update(
        "create or replace function clock.clock_timestamp() returns timestamptz stable language sql"
            + " as 'select instant from clock.hand'");
    PGSimpleDataSource sessions = database.plain();
    sessions.setOptions("-c search_path=clock,public,pg_catalog");
    Pollers pollers = builder().source(sessions).on(items(), (rows, context) -> {}).build();
    Instant now = Instant.parse("2026-11-30T12:00:00Z");
    set(now);
    tickUntil(pollers, Outcome.EMPTY);
    try (Connection slow = database.plain().getConnection()) {
      slow.setAutoCommit(false);
      slow.createStatement().execute("insert into items (id) values (4)");
      TestPollers.insert(database, 5, 5);
      tick(pollers, Outcome.HELD_BACK);
      assertThat(lines(LogEvent.ROWS_HELD_BACK)).isEmpty();
      set(now.plusSeconds(61));
      tick(pollers, Outcome.HELD_BACK);
      slow.rollback();
    }
  }

  private void set(Instant now) {
    database.update("delete from clock.hand");
    database.update("insert into clock.hand values (?::timestamptz)", now.toString());
  }

  @Test
  void aNodeThatStandsByLogsAtDebugOnly() throws Exception {
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    Pollers holder =
        pollers(
            (rows, context) -> {
              running.countDown();
              go.await();
            });
    started.add(holder);
    holder.start();
    running.await();
    logs.close();
    logs = new CapturedLogs();
    Pollers standby = pollers();
    for (int i = 0; i < 20; i++) {
      tick(standby, Outcome.STANDBY);
    }

    assertThat(logs.lines())
        .filteredOn(line -> line.contains("[pollers.logs]"))
        .hasSize(60)
        .allMatch(line -> line.startsWith("DEBUG "));
    for (LogEvent event :
        List.of(LogEvent.TICK_START, LogEvent.LEASE_ACQUIRE_SKIPPED, LogEvent.TICK_COMPLETE)) {
      assertThat(lines(event)).hasSize(20);
    }
    go.countDown();
  }

  @Test
  void theDocumentHasAllEventsWithTheirLevels() throws IOException {
    Map<String, String> documented = new LinkedHashMap<>();
    Files.readString(Path.of("..", "docs", "table-pollers.md"))
        .lines()
        .map(DOCUMENTED::matcher)
        .filter(Matcher::matches)
        .forEach(
            row ->
                Arrays.stream(row.group(1).replace("`", "").split(", ", -1))
                    .forEach(event -> documented.put(event, row.group(2))));

    assertThat(documented)
        .isEqualTo(
            Arrays.stream(LogEvent.values())
                .collect(Collectors.toMap(LogEvent::text, event -> event.level().toString())));
  }
}
