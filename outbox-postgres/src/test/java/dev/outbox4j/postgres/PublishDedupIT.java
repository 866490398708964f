package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.DedupWindow;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.migrations.DedupMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Of one dedup key no second message is published within its window. */
@ExtendWith(PostgresExtension.class)
class PublishDedupIT {
  private static final Duration HOUR = Duration.ofHours(1);

  private final TestDatabase database;
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private OutboxPublisher publisher;

  PublishDedupIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void empty() {
    database.migrate(DedupMigrations.of("public", "outbox"), DedupMigrations::migrate);
    database.update("truncate outbox, outbox_dedup");
    publisher = PostgresOutbox.publisher(database.table()).build();
  }

  @AfterEach
  void endThreads() throws InterruptedException {
    threads.shutdownNow();
    assertThat(threads.awaitTermination(20, TimeUnit.SECONDS)).isTrue();
  }

  private static OutboxMessage message(String key) {
    return message(key, DedupWindow.of(HOUR));
  }

  private static OutboxMessage message(String key, DedupWindow window) {
    return OutboxMessage.to("q").dedupKey(key, window).body("x").build();
  }

  private List<Published> commit(OutboxMessage... messages) {
    return PublishApi.JDBC.publish(
        database, PostgresOutbox.publisher(database.table()), List.of(messages));
  }

  private boolean isPublished(OutboxMessage message) {
    return !commit(message).get(0).deduplicated();
  }

  private Connection transaction() throws SQLException {
    Connection connection = database.plain().getConnection();
    connection.setAutoCommit(false);
    return connection;
  }

  private void passes(Duration time) {
    database.update(
        "update outbox_dedup set published_at = published_at - make_interval(secs => ?),"
            + " kept_until = kept_until - make_interval(secs => ?)",
        (double) time.toSeconds(),
        (double) time.toSeconds());
  }

  /** Waits until so many sessions wait for another's transaction. */
  private void awaitWaiting(int count) {
    await()
        .until(
            () ->
                database.one(
                        Long.class,
                        "select count(*) from pg_stat_activity where wait_event_type = 'Lock'")
                    == count);
  }

  @ParameterizedTest
  @EnumSource
  void theSecondMessageOfAKeyIsNotPublishedAndThatIsSaid(PublishApi api) {
    PostgresOutbox.PublisherBuilder builder = PostgresOutbox.publisher(database.table());
    Published first = api.publish(database, builder, List.of(message("k"))).get(0);
    List<Published> second =
        api.publish(
            database,
            builder,
            List.of(message("k"), message("other"), OutboxMessage.to("q").body("none").build()));

    assertThat(first.deduplicated()).isFalse();
    assertThat(second).extracting(Published::deduplicated).containsExactly(true, false, false);
    assertThat(database.list(Long.class, "select id from outbox order by id"))
        .containsExactly(
            first.rowId().orElseThrow(),
            second.get(1).rowId().orElseThrow(),
            second.get(2).rowId().orElseThrow());
  }

  @Test
  void aKeyIsOfItsQueue() {
    assertThat(isPublished(message("k"))).isTrue();
    assertThat(isPublished(OutboxMessage.to("r").dedupKey("k", HOUR).build())).isTrue();
    assertThat(isPublished(OutboxMessage.to("r").dedupKey("k", HOUR).build())).isFalse();
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void theWindowEndsWhenItsTimeIsOverWhetherTheFirstIsThereOrNot(boolean isThere) {
    assertThat(isPublished(message("k"))).isTrue();
    if (!isThere) {
      database.update("delete from outbox");
    }
    passes(HOUR.minusSeconds(1));
    assertThat(isPublished(message("k"))).isFalse();
    passes(Duration.ofSeconds(2));
    assertThat(isPublished(message("k"))).isTrue();
    assertThat(isPublished(message("k"))).isFalse();
    passes(HOUR.minusSeconds(1));
    assertThat(isPublished(message("k"))).isFalse();
  }

  @Test
  void aWindowInFlightEndsWhenTheFirstIsNoLongerThere() {
    DedupWindow window = DedupWindow.whileInFlight(HOUR);
    assertThat(isPublished(message("k", window))).isTrue();
    assertThat(isPublished(message("k", window))).isFalse();
    database.update("delete from outbox"); // it is acked
    assertThat(isPublished(message("k", window))).isTrue();
    passes(HOUR.plusSeconds(1));
    assertThat(isPublished(message("k", window))).isTrue();
    assertThat(database.count("outbox")).isEqualTo(2);
  }

  @Test
  void theWindowsInFlightAndCompletedAreApart() {
    DedupWindow window = new DedupWindow(HOUR, Duration.ofMinutes(5));
    assertThat(isPublished(message("k", window))).isTrue();
    passes(Duration.ofMinutes(6));
    assertThat(isPublished(message("k", window))).isFalse();
    database.update("delete from outbox");
    assertThat(isPublished(message("k", window))).isTrue();
    database.update("delete from outbox");
    passes(Duration.ofMinutes(4));
    assertThat(isPublished(message("k", window))).isFalse();
  }

  @Test
  void ofAHundredAtOnceInOpenTransactionsOneIsPublishedAndNoneFails() throws Exception {
    try (HikariDataSource pool = database.pool(100)) {
      CountDownLatch begin = new CountDownLatch(1);
      List<Future<Boolean>> calls = new ArrayList<>();
      for (int i = 0; i < 100; i++) {
        calls.add(
            threads.submit(
                () -> {
                  try (Connection connection = pool.getConnection()) {
                    connection.setAutoCommit(false);
                    begin.await();
                    boolean published = !publisher.publish(connection, message("k")).deduplicated();
                    try (var statement = connection.createStatement()) {
                      statement.execute("select 1"); // it is not aborted
                    }
                    connection.commit();
                    return published;
                  }
                }));
      }
      begin.countDown();
      int published = 0;
      for (Future<Boolean> call : calls) {
        published += call.get(60, TimeUnit.SECONDS) ? 1 : 0;
      }
      assertThat(published).isOne();
    }
    assertThat(database.count("outbox")).isEqualTo(1);
  }

  /** Whoever was told that there is no need holds up nobody, however long its transaction takes. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void othersWaitForTheFirstAndNotForEachOther(boolean windowOver) throws Exception {
    if (windowOver) {
      commit(message("k"));
      passes(HOUR.plusSeconds(1));
    }
    try (Connection first = transaction();
        Connection second = transaction();
        Connection third = transaction()) {
      assertThat(publisher.publish(first, message("k")).deduplicated()).isFalse();
      Future<Published> secondCall = threads.submit(() -> publisher.publish(second, message("k")));
      Future<Published> thirdCall = threads.submit(() -> publisher.publish(third, message("k")));
      awaitWaiting(2);
      first.commit();
      assertThat(secondCall.get(20, TimeUnit.SECONDS).deduplicated()).isTrue();
      assertThat(thirdCall.get(20, TimeUnit.SECONDS).deduplicated()).isTrue();
      assertThat(isPublished(message("k"))).isFalse();
      second.commit();
      third.rollback();
    }
    assertThat(database.count("outbox")).isEqualTo(windowOver ? 2 : 1);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aKeyIsFreeAgainIfItsTransactionRollsBack(boolean windowOver) throws Exception {
    if (windowOver) {
      commit(message("k"));
      passes(HOUR.plusSeconds(1));
    }
    try (Connection first = transaction();
        Connection second = transaction()) {
      assertThat(publisher.publish(first, message("k")).deduplicated()).isFalse();
      Future<Published> secondCall = threads.submit(() -> publisher.publish(second, message("k")));
      awaitWaiting(1);
      first.rollback();
      assertThat(secondCall.get(20, TimeUnit.SECONDS).deduplicated()).isFalse();
      second.commit();
    }
    assertThat(isPublished(message("k"))).isFalse();
  }

  /**
   * The message that the other transaction published is not in the snapshot of who waited for it.
   */
  @Test
  void whatIsCommittedMeanwhileIsInFlight() throws Exception {
    DedupWindow window = DedupWindow.whileInFlight(HOUR);
    commit(message("k", window));
    database.update("delete from outbox");
    try (Connection first = transaction();
        Connection second = transaction()) {
      assertThat(publisher.publish(first, message("k", window)).deduplicated()).isFalse();
      Future<Published> secondCall =
          threads.submit(() -> publisher.publish(second, message("k", window)));
      awaitWaiting(1);
      first.commit();
      assertThat(secondCall.get(20, TimeUnit.SECONDS).deduplicated()).isTrue();
      second.commit();
    }
    assertThat(database.count("outbox")).isEqualTo(1);
  }

  @Test
  void twoTransactionsThatPublishTheSameKeysInAnyOrderDoNotDeadlock() throws Exception {
    List<OutboxMessage> ascending = IntStream.range(0, 50).mapToObj(i -> message("k" + i)).toList();
    List<OutboxMessage> descending = new ArrayList<>(ascending);
    java.util.Collections.reverse(descending);
    try (HikariDataSource pool = database.pool(8)) {
      for (int round = 0; round < 20; round++) {
        if (round % 2 == 1) {
          passes(HOUR.plusSeconds(1));
        } else {
          database.update("truncate outbox, outbox_dedup");
        }
        long before = database.count("outbox");
        CountDownLatch begin = new CountDownLatch(1);
        List<Future<Long>> calls = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
          List<OutboxMessage> call = i % 2 == 0 ? ascending : descending;
          calls.add(
              threads.submit(
                  () -> {
                    try (Connection connection = pool.getConnection()) {
                      connection.setAutoCommit(false);
                      begin.await();
                      List<Published> published = publisher.publish(connection, call);
                      connection.commit();
                      return published.stream().filter(each -> !each.deduplicated()).count();
                    }
                  }));
        }
        begin.countDown();
        long published = 0;
        for (Future<Long> call : calls) {
          published += call.get(30, TimeUnit.SECONDS);
        }
        assertThat(published).isEqualTo(50);
        assertThat(database.count("outbox")).isEqualTo(before + 50);
      }
    }
  }

  /**
   * The first transaction waits between two of its keys; the window of its last one ends meanwhile,
   * so that the second finds that over, which the first has not.
   */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aWindowThatEndsBetweenTwoBeginsMakesNoDeadlock(boolean purged) throws Exception {
    commit(message("z"));
    try (Connection third = transaction();
        Connection first = transaction();
        Connection second = transaction()) {
      publisher.publish(third, message("m"));
      Future<List<Published>> firstCall =
          threads.submit(
              () -> publisher.publish(first, List.of(message("a"), message("m"), message("z"))));
      awaitWaiting(1);
      passes(HOUR.plusSeconds(1));
      Future<List<Published>> secondCall =
          threads.submit(() -> publisher.publish(second, List.of(message("z"), message("a"))));
      awaitWaiting(2);
      if (purged) {
        PostgresOutbox.on(database.plain(), database.table()).purgeDedupKeys(10);
      }
      third.commit();
      List<Published> byFirst = firstCall.get(20, TimeUnit.SECONDS);
      first.commit();
      List<Published> bySecond = secondCall.get(20, TimeUnit.SECONDS);
      second.commit();
      assertThat(byFirst).extracting(Published::deduplicated).containsExactly(false, true, false);
      assertThat(bySecond).extracting(Published::deduplicated).containsExactly(true, true);
    }
    assertThat(database.list(String.class, "select dedup_key from outbox_dedup order by dedup_key"))
        .containsExactly("a", "m", "z");
  }

  @Test
  void aKeyThatIsPurgedWhileItIsWaitedForIsFree() throws Exception {
    commit(message("k"));
    passes(HOUR.plusSeconds(1));
    try (Connection purging = transaction();
        Connection second = transaction();
        var statement = purging.createStatement()) {
      statement.executeUpdate("delete from outbox_dedup");
      Future<Published> call = threads.submit(() -> publisher.publish(second, message("k")));
      awaitWaiting(1);
      purging.commit();
      assertThat(call.get(20, TimeUnit.SECONDS).deduplicated()).isFalse();
      second.commit();
    }
    assertThat(isPublished(message("k"))).isFalse();
  }

  @ParameterizedTest
  @EnumSource
  void ofOneKeyTwiceInACallTheFirstIsPublished(PublishApi api) {
    for (DedupWindow window :
        List.of(
            DedupWindow.of(HOUR),
            DedupWindow.whileInFlight(HOUR),
            new DedupWindow(Duration.ZERO, HOUR))) {
      database.update("truncate outbox, outbox_dedup");
      List<Published> published =
          api.publish(
              database,
              PostgresOutbox.publisher(database.table()),
              List.of(
                  OutboxMessage.to("q").type("first").dedupKey("k", window).build(),
                  OutboxMessage.to("q").type("second").dedupKey("k", window).build(),
                  OutboxMessage.to("r").type("other queue").dedupKey("k", window).build()));
      assertThat(published)
          .as("with %s", window)
          .extracting(Published::deduplicated)
          .containsExactly(false, true, false);
      assertThat(database.list(String.class, "select type from outbox order by id"))
          .containsExactly("first", "other queue");
      assertThat(database.list(Long.class, "select message_id from outbox_dedup order by queue"))
          .containsExactly(
              published.get(0).rowId().orElseThrow(), published.get(2).rowId().orElseThrow());
    }
  }

  @ParameterizedTest
  @EnumSource
  void idsAreInTheOrderOfTheMessages(PublishApi api) {
    List<OutboxMessage> messages = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      OutboxMessage.Builder builder = OutboxMessage.to("q").orderingKey("o" + i % 3);
      messages.add((i % 2 == 0 ? builder.dedupKey("k" + (997 * i) % 200, HOUR) : builder).build());
    }
    List<Published> published =
        api.publish(database, PostgresOutbox.publisher(database.table()), messages);
    assertThat(published.stream().map(each -> each.rowId().orElseThrow()).toList())
        .isSorted()
        .doesNotHaveDuplicates()
        .hasSize(200);
  }

  @Test
  void timersOfTheSameCallKeepTheirOwnRule() {
    OutboxMessage timer = OutboxMessage.to("q").timerId("t").deliverIn(HOUR).build();
    assertThat(commit(message("k"), timer))
        .extracting(Published::deduplicated)
        .containsExactly(false, false);
    assertThat(commit(timer, message("l"), message("k")))
        .extracting(Published::deduplicated)
        .containsExactly(true, false, true);
  }

  @ParameterizedTest
  @EnumSource
  void whoSleepsIsNotifiedOfWhatIsPublishedAndOfNothingElse(NotifyMode mode) throws SQLException {
    database.update("insert into outbox_sleepers values ('q', 's', 'infinity', true, 'infinity')");
    OutboxPublisher notifying = PostgresOutbox.publisher(database.table()).notify(mode).build();
    try (Connection listening = database.plain().getConnection()) {
      try (var statement = listening.createStatement()) {
        statement.execute("listen outbox_outbox");
      }
      for (boolean isNew : new boolean[] {true, false}) {
        try (Connection tx = transaction()) {
          notifying.publish(tx, message("k"));
          tx.commit();
        }
        try (var statement = listening.createStatement()) {
          statement.execute("select 1");
        }
        var notifications = listening.unwrap(org.postgresql.PGConnection.class).getNotifications();
        assertThat(notifications == null ? 0 : notifications.length)
            .isEqualTo(isNew && mode != NotifyMode.NEVER ? 1 : 0);
      }
    } finally {
      database.update("delete from outbox_sleepers");
    }
  }

  @Test
  void keysWhoseWindowsAreOverArePurged() {
    commit(IntStream.range(0, 10).mapToObj(i -> message("k" + i)).toArray(OutboxMessage[]::new));
    passes(HOUR.plusSeconds(1));
    commit(message("young"));
    PostgresOutbox outbox = PostgresOutbox.on(database.plain(), database.table());
    assertThat(outbox.purgeDedupKeys(7)).isEqualTo(7);
    assertThat(outbox.purgeDedupKeys(7)).isEqualTo(3);
    assertThat(database.list(String.class, "select dedup_key from outbox_dedup"))
        .containsExactly("young");
    for (int limit : new int[] {0, 100_001}) {
      assertThatThrownBy(() -> outbox.purgeDedupKeys(limit))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("limit is " + limit + "; it must be 1 to 100000");
    }
  }

  @Test
  void noMoreArePurgedThanTheLimitWhateverTheStatisticsSay() {
    database.update("alter table outbox_dedup set (autovacuum_enabled = off)");
    commit(message("one"));
    database.update("vacuum analyze outbox_dedup");
    for (int i = 0; i < 50; i++) {
      commit(message("k" + i));
    }
    database.update("update outbox_dedup set kept_until = now() - interval '1 hour'");

    assertThat(PostgresOutbox.on(database.plain(), database.table()).purgeDedupKeys(7))
        .isEqualTo(7);
    assertThat(database.count("outbox_dedup")).isEqualTo(44);
    database.update("alter table outbox_dedup reset (autovacuum_enabled)");
  }

  @Test
  void purgingWaitsForNobody() throws Exception {
    commit(message("a"), message("b"));
    passes(HOUR.plusSeconds(1));
    try (Connection tx = transaction()) {
      publisher.publish(tx, message("a"));
      assertThat(PostgresOutbox.on(database.plain(), database.table()).purgeDedupKeys(10))
          .isEqualTo(1);
      tx.commit();
    }
    assertThat(isPublished(message("a"))).isFalse();
  }

  @Test
  void withoutItsTableTheMigrationsAreNamed() {
    database.update("alter table outbox_dedup rename to away");
    try {
      assertThatThrownBy(() -> commit(message("k")))
          .isInstanceOf(OutboxStoreException.class)
          .hasMessageContaining("run the migrations of DedupMigrations");
      assertThat(isPublished(OutboxMessage.to("q").build())).isTrue();
      assertThat(report()).contains("outbox_dedup: expected the table of dedup keys");
    } finally {
      database.update("alter table away rename to outbox_dedup");
    }
    assertThat(report()).isEqualTo("valid");
  }

  @Test
  void withoutItsFunctionTheMigrationsAreNamed() {
    database.update("alter function outbox_dedup_take rename to away");
    try {
      assertThatThrownBy(() -> commit(message("k")))
          .isInstanceOf(OutboxStoreException.class)
          .hasMessageContaining("run the migrations of DedupMigrations");
      assertThat(report())
          .contains(
              "function public.outbox_dedup_take: expected a function that can be called with")
          .contains("found no such function");
    } finally {
      database.update("alter function away rename to outbox_dedup_take");
    }
    assertThat(report()).isEqualTo("valid");
  }

  private String report() {
    return PostgresOutbox.on(database.plain(), database.table())
        .validator()
        .dedup()
        .checkStorage()
        .checkGrants(OutboxRole.PUBLISHER)
        .validateSchema()
        .toString();
  }

  @Test
  void theGrantsAreEnoughAndEachIsNeeded() throws SQLException {
    String all = DedupMigrations.of("public", "outbox").grantsSql("deduper");
    database.update("create role deduper login");
    try {
      database.update(
          dev.outbox4j.migrations.OutboxMigrations.of("public", "outbox")
              .grantsSql("deduper", "deduper", "deduper"));
      List<String> grants =
          Arrays.stream(all.split("\n")).filter(line -> line.startsWith("grant")).toList();
      database.update(all);
      publishAsDeduper();
      passes(HOUR.plusSeconds(1));
      publishAsDeduper();
      for (String each : grants) {
        if (each.contains(" on schema ")) {
          continue; // which others need, too
        }
        passes(HOUR.plusSeconds(1));
        database.update(each.replaceFirst("^grant", "revoke").replace(" to ", " from "));
        assertThatThrownBy(this::publishAsDeduper)
            .as(each)
            .isInstanceOf(OutboxStoreException.class)
            .hasMessageContaining("42501");
        database.update(each);
      }
    } finally {
      database.update("drop owned by deduper");
      database.update("drop role deduper");
    }
  }

  private void publishAsDeduper() throws SQLException {
    try (Connection tx = transaction()) {
      try (var statement = tx.createStatement()) {
        statement.execute("set local role deduper");
      }
      assertThat(publisher.publish(tx, message("granted")).deduplicated()).isFalse();
      tx.commit();
    }
  }
}
