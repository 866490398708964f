package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.QueueDepth;
import dev.outbox4j.postgres.internal.SharedDepths.Look;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The lease of who counts the queues for all. */
@ExtendWith(PostgresExtension.class)
class SharedDepthsIT {
  private static final Duration INTERVAL = Duration.ofMinutes(1);

  private final TestDatabase database;

  SharedDepthsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void empty() {
    database.update("truncate outbox, outbox_sleepers");
  }

  private SharedDepths depths() {
    return new SharedDepths(database.plain(), database.table(), INTERVAL);
  }

  private static Look look(SharedDepths depths) {
    return depths.look(() -> false);
  }

  /** The lease of whoever has it runs out. */
  private void expire() {
    database.update("update outbox_sleepers set until = now() - interval '1 s'");
  }

  @Test
  void whoComesFirstCountsAndGoesOnToCount() {
    database.update("insert into outbox (queue, payload) values ('a', 'x'), ('b', 'x')");
    SharedDepths first = depths();
    SharedDepths second = depths();

    for (int i = 0; i < 3; i++) {
      assertThat(look(first).depths()).extracting(QueueDepth::queue).containsExactly("a", "b");
      assertThat(first.holds()).isTrue();
      Look seconds = look(second);
      assertThat(seconds.depths()).isNull();
      assertThat(seconds.heldFor()).isBetween(Duration.ofSeconds(90), INTERVAL.multipliedBy(2));
      assertThat(second.holds()).isFalse();
    }
    assertThat(database.count("outbox_sleepers")).isEqualTo(1);
  }

  @Test
  void anotherCountsOnceTheLeaseHasRunOut() {
    SharedDepths first = depths();
    SharedDepths second = depths();
    look(first);
    expire();

    assertThat(look(second).depths()).isEmpty();
    assertThat(look(first).depths()).isNull();
    assertThat(first.holds()).isFalse();
  }

  @Test
  void whoseLeaseHasRunOutTakesItAgainIfNobodyHas() {
    SharedDepths only = depths();
    look(only);
    expire();

    assertThat(look(only).depths()).isEmpty();
  }

  @Test
  void whoGivesTheLeaseBackLeavesItToTheNext() {
    SharedDepths first = depths();
    SharedDepths second = depths();
    look(first);

    first.giveBack();

    assertThat(look(second).depths()).isEmpty();
    first.giveBack();
    assertThat(look(second).depths()).isEmpty();
    assertThat(look(first).depths()).isNull();
  }

  @Test
  void whoLostTheLeaseGivesBackNothingOfTheNext() {
    SharedDepths first = depths();
    SharedDepths second = depths();
    look(first);
    expire();
    look(second);

    first.giveBack();

    assertThat(look(depths()).depths()).isNull();
  }

  @Test
  void whoForgoesTheLeaseHasToWaitForItsEndAsOthersDo() {
    SharedDepths first = depths();
    look(first);

    first.forgo();

    assertThat(look(first).depths()).isNull();
    expire();
    assertThat(look(first).depths()).isEmpty();
  }

  @Test
  void aLeaseOfAClockThatWasSetBackIsOver() {
    SharedDepths first = depths();
    look(first);
    database.update("update outbox_sleepers set until = now() + interval '1 day'");

    assertThat(look(depths()).depths()).isEmpty();
  }

  @Test
  void ofManyAtOnceOneCounts() throws Exception {
    int many = 8;
    ExecutorService pool = Executors.newFixedThreadPool(many);
    try {
      for (int round = 0; round < 20; round++) {
        database.update(round % 2 == 0 ? "truncate outbox_sleepers" : expired());
        CyclicBarrier together = new CyclicBarrier(many);
        List<Future<Boolean>> looks = new ArrayList<>();
        for (int i = 0; i < many; i++) {
          looks.add(
              pool.submit(
                  () -> {
                    SharedDepths depths = depths();
                    together.await(30, TimeUnit.SECONDS);
                    return look(depths).depths() != null;
                  }));
        }
        int counted = 0;
        for (Future<Boolean> each : looks) {
          counted += each.get(30, TimeUnit.SECONDS) ? 1 : 0;
        }
        assertThat(counted).as("round %d", round).isEqualTo(1);
      }
    } finally {
      pool.shutdownNow();
    }
  }

  private static String expired() {
    return "update outbox_sleepers set until = now() - interval '1 s'";
  }

  @Test
  void whoLooksInVainWritesNothingAndWaitsForNoLock() throws SQLException {
    look(depths());
    try (Connection other = database.plain().getConnection()) {
      other.setAutoCommit(false);
      try (var locks = other.prepareStatement("select from outbox_sleepers for update")) {
        locks.execute();

        assertThat(look(depths()).depths()).isNull();
      }
      other.rollback();
    }
  }

  @Test
  void asksNothingIfItIsStoppedWhenItHasAConnection() {
    CountingDataSource counted = new CountingDataSource(database.plain());

    Look look = new SharedDepths(counted, database.table(), INTERVAL).look(() -> true);

    assertThat(look.depths()).isNull();
    assertThat(counted.executions()).isZero();
  }

  @Test
  void takesTwoStatementsToCountAndOneOtherwise() {
    CountingDataSource counted = new CountingDataSource(database.plain());
    SharedDepths first = new SharedDepths(counted, database.table(), INTERVAL);
    look(first);
    assertThat(counted.executions()).isEqualTo(2);
    look(first);
    assertThat(counted.executions()).isEqualTo(4);

    CountingDataSource others = new CountingDataSource(database.plain());
    look(new SharedDepths(others, database.table(), INTERVAL));
    assertThat(others.executions()).isEqualTo(1);
    assertThat(counted.mostLent()).isEqualTo(1);
  }

  @Test
  void publishersTakeItForNoSleeperAndSubscribersLeaveItAlone() throws SQLException {
    SharedDepths first = depths();
    look(first);
    try (Ears ears = new Ears(database);
        Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      PostgresOutbox.publisher(database.table())
          .build()
          .publish(connection, OutboxMessage.to("a").body("x").build());
      connection.commit();
      PostgresOutbox.on(database.plain(), database.table()).store().forget("somebody");

      assertThat(ears.heard()).isEmpty();
    }
    assertThat(look(depths()).depths()).as("the lease is there").isNull();
    assertThat(look(first).depths()).hasSize(1);
  }
}
