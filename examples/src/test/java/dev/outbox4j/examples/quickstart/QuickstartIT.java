package dev.outbox4j.examples.quickstart;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresExtension.class)
@Tag("once")
class QuickstartIT {
  private final ByteArrayOutputStream printed = new ByteArrayOutputStream();

  @Test
  void accountsForEveryOrderOnAServerItStartsItself() throws Exception {
    assertThat(run(new Options(null, "", "", 1_000, 0, false))).as(this::output).isZero();

    assertThat(output())
        .contains("All accounted for: 1000 orders")
        .containsPattern("committed: its row is there +950 +0 +ok")
        .containsPattern("committed, not poison: shipped +930 +0 +ok")
        .containsPattern("rolled back: not shipped +50 +0 +ok")
        .containsPattern("rejected: one dead letter .* +10 +0 +ok")
        .containsPattern("always failing: one dead letter .* +10 +0 +ok")
        .containsPattern("failing twice: .* +30 +0 +ok")
        .containsPattern("delayed: .* +30 +0 +ok")
        .containsPattern("heartbeat: one run .* +[1-9]\\d* +0 +ok")
        .containsPattern("heartbeat: one effect .* +[1-9]\\d* +0 +ok")
        .doesNotContain("WRONG");
  }

  @Test
  void runsOnTheUsersDatabaseAgainAndAgainAndTellsWhatIsMissing(TestDatabase database)
      throws Exception {
    Options options =
        new Options(
            "jdbc:postgresql://%s:%d/%s"
                .formatted(database.server().host(), database.server().port(), database.name()),
            database.server().user(),
            database.server().password(),
            200,
            0,
            false);
    assertThat(run(options)).as(this::output).isZero();
    stoppedForADay(database);
    assertThat(run(options)).as(this::output).isZero();

    swallowShipmentsOfThirdAttempts(database);
    swallowHeartbeats(database);

    assertThat(run(options)).as(this::output).isEqualTo(1);
    assertThat(output())
        .containsPattern("committed, not poison: shipped +186 +6 +WRONG")
        .containsPattern("failing twice: .* +6 +6 +WRONG")
        .containsPattern("heartbeat: one effect every 2 s, by the clock +(\\d+) +\\1 +WRONG")
        .contains("SOMETHING IS WRONG");
  }

  /** The heartbeat's instants of the last ten minutes are then caught up. */
  private static void stoppedForADay(TestDatabase database) {
    int moved =
        database.update(
            """
            update outbox_quickstart.outbox_timer
            set decided_up_to = decided_up_to - interval '1 day', due_at = due_at - interval '1 day'
            where name = 'heartbeat'
            """);
    assertThat(moved).isEqualTo(1);
  }

  private static void swallowShipmentsOfThirdAttempts(TestDatabase database) {
    database.update(
        """
        create function swallow() returns trigger language plpgsql as
        'begin if new.attempt = 3 then return null; end if; return new; end'
        """);
    database.update(
        """
        create trigger swallow before insert on outbox_quickstart.shipments
        for each row execute function swallow()
        """);
  }

  private static void swallowHeartbeats(TestDatabase database) {
    database.update(
        """
        create function swallow_all() returns trigger language plpgsql as
        'begin return null; end'
        """);
    database.update(
        """
        create trigger swallow before insert on outbox_quickstart.heartbeats
        for each row execute function swallow_all()
        """);
  }

  private int run(Options options) throws Exception {
    return new Quickstart(options, new PrintStream(printed, true, StandardCharsets.UTF_8)).run();
  }

  private String output() {
    return printed.toString(StandardCharsets.UTF_8);
  }
}
