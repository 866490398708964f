package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.JobMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** What the check of the schema finds of job queues, and which rights who has one needs. */
@ExtendWith(PostgresExtension.class)
class SchemaJobsIT {
  private static final OutboxMigrations OUTBOX = OutboxMigrations.of("jobs", "outbox");
  private static final JobMigrations JOBS = JobMigrations.of("jobs", "outbox");
  private static final OutboxTable TABLE = OutboxTable.named("outbox").inSchema("jobs");
  private static final String ENQUEUE =
      "select jobs.outbox_job_enqueue('q', 'j', 't', '', '{}', interval '0', interval '1 min',"
          + " interval '1 h')";

  private final TestDatabase database;

  SchemaJobsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    database.update("drop schema if exists jobs cascade");
    OUTBOX.migrate(database.plain());
  }

  private static SchemaValidator validator(DataSource source) {
    return PostgresOutbox.on(source, TABLE).validator().jobs();
  }

  @Test
  void namesTheTablesThatAreMissing() {
    assertThat(
            validator(database.plain()).validateSchema().faults().stream().map(SchemaFault::object))
        .containsExactlyInAnyOrder("table jobs.outbox_job", "table jobs.outbox_job_end");
    assertThat(JOBS.migrate(database.plain())).isEqualTo(1);
    assertThat(validator(database.plain()).checkStorage().validateSchema()).hasToString("valid");
    assertThat(JOBS.migrate(database.plain())).isZero();
  }

  @Test
  void namesTheFunctionAndTheIndexThatAreMissing() {
    JOBS.migrate(database.plain());
    database.update(
        "drop function jobs.outbox_job_enqueue(text, text, text, bytea, jsonb, interval, interval,"
            + " interval)");
    database.update("drop index jobs.outbox_job_message_idx");
    assertThat(
            validator(database.plain()).validateSchema().faults().stream().map(SchemaFault::object))
        .hasSize(2)
        .anySatisfy(object -> assertThat(object).isEqualTo("function jobs.outbox_job_enqueue"))
        .anySatisfy(object -> assertThat(object).contains("outbox_job"));
  }

  @Test
  void theMigrationsAreTheSameAsSql() {
    database.update(JOBS.sql());
    assertThat(validator(database.plain()).checkStorage().validateSchema()).hasToString("valid");
  }

  @Test
  void whoEnqueuesOrRunsJobsNeedsGrants() throws SQLException {
    JOBS.migrate(database.plain());
    if (database
        .list(String.class, "select rolname::text from pg_roles where rolname = 'jobber'")
        .isEmpty()) {
      database.update("create role jobber login password 'secret'");
    }
    PGSimpleDataSource role = database.plain();
    role.setUser("jobber");
    role.setPassword("secret");
    database.update(OUTBOX.grantsSql("jobber", "jobber", "jobber"));
    for (OutboxRole each : List.of(OutboxRole.PUBLISHER, OutboxRole.SUBSCRIBER)) {
      assertThat(
              validator(role).checkGrants(each).validateSchema().faults().stream()
                  .map(SchemaFault::object)
                  .distinct())
          .contains("grant on jobs.outbox_job", "grant on jobs.outbox_job_end");
    }

    database.update(JOBS.grantsSql("jobber"));
    for (OutboxRole each : List.of(OutboxRole.PUBLISHER, OutboxRole.SUBSCRIBER)) {
      assertThat(validator(role).checkGrants(each).validateSchema()).hasToString("valid");
    }
    try (Connection connection = role.getConnection();
        Statement statement = connection.createStatement()) {
      assertThat(statement.execute(ENQUEUE)).isTrue();
    }
    assertThat(database.count("jobs.outbox")).isEqualTo(1);
  }

  @Test
  void namesMayHaveSpaces() {
    OutboxMigrations.of("jobs", "my box").migrate(database.plain());
    JobMigrations.of("jobs", "my box").migrate(database.plain());
    String enqueue =
        ENQUEUE
            .replace("select", "select decision from")
            .replace("outbox_job_enqueue", "\"my box_job_enqueue\"");
    assertThat(database.list(String.class, enqueue)).containsExactly("enqueued");
    assertThat(database.count("jobs.\"my box\"")).isEqualTo(1);
    assertThat(
            PostgresOutbox.on(database.plain(), OutboxTable.named("my box").inSchema("jobs"))
                .validator()
                .jobs()
                .validateSchema())
        .hasToString("valid");
  }
}
