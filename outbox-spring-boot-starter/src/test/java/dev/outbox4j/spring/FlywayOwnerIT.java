package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** As whom and where the outbox is migrated in a service that has a Flyway of its own. */
@ExtendWith({PostgresExtension.class, OutputCaptureExtension.class})
@Tag("once")
class FlywayOwnerIT extends StarterFixture {

  FlywayOwnerIT(TestDatabase database) {
    super(database);
  }

  private ApplicationContextRunner withFlywayOn(DataSource flyway) {
    return new ApplicationContextRunner()
        .withConfiguration(AutoConfigurations.of(OutboxAutoConfiguration.class))
        .withBean(DataSource.class, () -> database.plain())
        .withBean(Flyway.class, () -> Flyway.configure().dataSource(flyway).load())
        .withPropertyValues("outbox4j.listen.enabled=false", "outbox4j.schema=" + schema);
  }

  @Test
  void migratesTheOutboxesDatabaseIfTheServicesFlywayIsOfAnother() {
    String other = "other_" + schema;
    database.update("create database " + other);
    PGSimpleDataSource elsewhere = database.plain();
    elsewhere.setDatabaseName(other);
    withFlywayOn(elsewhere)
        .run(
            context -> {
              assertThat(context).hasNotFailed();
              assertThat(rows("outbox")).isZero();
            });
  }

  @Test
  void migratesAsTheRoleOfTheServicesFlywayIfThatIsOfTheSameDatabase() {
    String role = "owner_" + schema;
    database.update("create role " + role + " login");
    database.update("create schema " + schema + " authorization " + role);
    PGSimpleDataSource owner = database.plain();
    owner.setUser(role);
    withFlywayOn(owner)
        .run(
            context -> {
              assertThat(context).hasNotFailed();
              assertThat(
                      database.one(
                          String.class,
                          "select tableowner from pg_tables where schemaname = ? and tablename = 'outbox'",
                          schema))
                  .isEqualTo(role);
            });
  }

  @Test
  void saysThatItTakesThePoolsRoleIfTheServiceHasTwoFlyways(CapturedOutput output) {
    String role = "two_" + schema;
    database.update("create role " + role + " login");
    PGSimpleDataSource owner = database.plain();
    owner.setUser(role);
    withFlywayOn(owner)
        .withBean("other", Flyway.class, () -> Flyway.configure().dataSource(owner).load())
        .run(
            context -> {
              assertThat(context).hasNotFailed();
              assertThat(rows("outbox")).isZero();
            });
    assertThat(output).contains("several Flyway beans and none is primary");
  }
}
