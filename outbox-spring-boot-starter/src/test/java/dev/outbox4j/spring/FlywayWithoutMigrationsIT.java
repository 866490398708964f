package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.util.List;
import org.flywaydb.core.Flyway;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Configuration;

/**
 * What a service sees of Flyway that has no migrations for it. With Spring Boot 3.5 each service
 * has Boot's Flyway as soon as it has the starter; with 4 one that adds Boot's Flyway module.
 */
@ExtendWith({PostgresExtension.class, OutputCaptureExtension.class})
@Tag("once")
class FlywayWithoutMigrationsIT extends StarterFixture {

  FlywayWithoutMigrationsIT(TestDatabase database) {
    super(database);
  }

  /** Configured by the class path alone. */
  @Configuration(proxyBeanMethods = false)
  @EnableAutoConfiguration
  static class ByTheClassPath {}

  /** The outbox is in the schema that the service's connections have. */
  private ApplicationContextRunner byTheClassPath() {
    database.update("create schema if not exists " + schema);
    return new ApplicationContextRunner()
        .withUserConfiguration(ByTheClassPath.class)
        .withPropertyValues(
            "spring.datasource.url=" + url() + "?currentSchema=" + schema,
            "spring.datasource.username=" + database.server().user(),
            "spring.datasource.password=" + database.server().password(),
            "outbox4j.schema=" + schema);
  }

  private List<String> tables() {
    return database.list(
        String.class,
        "select table_name from information_schema.tables where table_schema = ?",
        schema);
  }

  @Test
  void anEmptySchemaGetsATableOfFlywaysAndTheLogAWarning(CapturedOutput output) {
    byTheClassPath().run(context -> assertThat(context).hasNotFailed().hasSingleBean(Flyway.class));
    assertThat(tables()).contains("flyway_schema_history", "outbox", "outbox_dlq");
    assertThat(rows("flyway_schema_history")).isZero();
    assertThat(output).contains("No migrations found");
    byTheClassPath().run(context -> assertThat(context).hasNotFailed());
  }

  @Test
  void aSchemaThatHasTablesKeepsTheServiceFromStarting() {
    database.update("create schema " + schema);
    database.update("create table " + schema + ".made_by_another_tool (id int)");
    byTheClassPath()
        .run(
            context ->
                assertThat(context)
                    .getFailure()
                    .rootCause()
                    .hasMessageContaining("Found non-empty schema(s) \"" + schema + "\"")
                    .hasMessageContaining("baselineOnMigrate"));
    assertThat(tables()).containsExactly("made_by_another_tool");
  }

  @Test
  void withoutBootsFlywayTheOutboxIsMigratedBesideWhatIsThere(CapturedOutput output) {
    database.update("create schema " + schema);
    database.update("create table " + schema + ".made_by_another_tool (id int)");
    byTheClassPath()
        .withPropertyValues("spring.flyway.enabled=false")
        .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(Flyway.class));
    assertThat(tables())
        .contains("made_by_another_tool", "outbox", "outbox_dlq")
        .doesNotContain("flyway_schema_history");
    assertThat(output).doesNotContain("No migrations found");
  }
}
