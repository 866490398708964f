package dev.outbox4j.poller;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;

/** What a builder takes and refuses, without a database. */
class PollersBuilderTest {
  private static final Poller POLLER =
      Poller.of("one", Source.table("t"), Cursor.sequence("id"), Deletes.ignored());

  private static Pollers.Builder builder() {
    return Pollers.builder(
        PostgresOutbox.on(new PGSimpleDataSource(), OutboxTable.named("outbox")), "shop");
  }

  @Test
  void refusesWhatCannotBeMeant() {
    assertThatThrownBy(() -> builder().build())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("there is no poller");
    assertThatThrownBy(() -> builder().on(POLLER, (rows, context) -> {}).publishTo(POLLER, "queue"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("two pollers of the name 'one'");
    assertThatThrownBy(() -> builder().publishTo(POLLER, " "))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> builder().gracefulTimeout(Duration.ofDays(2)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("gracefulTimeout is PT48H");
    assertThatThrownBy(() -> builder().node("")).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void buildsWithoutADatabaseAndIsUnhealthyUntilItLooked() {
    Pollers pollers = builder().on(POLLER, (rows, context) -> {}).build();
    assertThat(pollers.health().started()).isFalse();
    assertThat(pollers.health().healthy()).isFalse();
    assertThat(pollers.health().pollers())
        .singleElement()
        .satisfies(
            health -> {
              assertThat(health.state()).isEqualTo(PollerHealth.State.NEW);
              assertThat(health.healthy()).isFalse();
              assertThat(health.lag()).isEmpty();
            });
    assertThatThrownBy(() -> pollers.tick("other"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("there is no poller 'other' here; there are [one]");
    pollers.stop();
    assertThatThrownBy(pollers::start).isInstanceOf(IllegalStateException.class);
  }
}
