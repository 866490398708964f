package dev.outbox4j.examples.monitor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresExtension.class)
class IssuesExampleIT {
  private final TestDatabase database;
  private final ByteArrayOutputStream printed = new ByteArrayOutputStream();

  IssuesExampleIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    IssueWatcher.migrate(database.plain(), "public");
    database.update(
        "truncate outbox, outbox_dlq, outbox_monitor, outbox_monitor_event, issue_alerts");
  }

  @Test
  void everyWatchAndEveryAlertIsAccountedFor() throws Exception {
    assertThat(run()).as(this::output).isTrue();

    assertThat(output())
        .containsPattern("busy: completed, condition met +5 +0 +ok")
        .containsPattern("quiet: completed, expired +5 +0 +ok")
        .containsPattern("closed: terminated +5 +0 +ok")
        .containsPattern("gone: failed +5 +0 +ok")
        .contains("All accounted for: 5 alerts of 5 repositories");
  }

  @Test
  void anAlertThatIsLostIsTold() throws Exception {
    database.update(
        "create or replace function swallow() returns trigger language plpgsql as"
            + " 'begin return null; end'");
    database.update(
        "create trigger swallow before insert on issue_alerts"
            + " for each row when (new.monitor = 'busy-3') execute function swallow()");
    try {
      assertThat(run()).as(this::output).isFalse();
    } finally {
      database.update("drop trigger swallow on issue_alerts");
    }

    assertThat(output())
        .contains("4 alerts of 5 met conditions")
        .contains("1 met conditions have no alert, or more than one")
        .contains("SOMETHING IS WRONG");
  }

  private boolean run() throws Exception {
    PrintStream out = new PrintStream(printed, true, StandardCharsets.UTF_8);
    return new IssuesExample(database.plain(), "public", 5, out).run();
  }

  private String output() {
    return printed.toString(StandardCharsets.UTF_8);
  }
}
