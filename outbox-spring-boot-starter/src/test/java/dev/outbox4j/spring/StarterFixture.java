package dev.outbox4j.spring;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.util.UUID;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** A Spring Boot service on the test database, with an outbox in a schema of the test's own. */
abstract class StarterFixture {
  final TestDatabase database;
  final String schema = "shop_" + UUID.randomUUID().toString().replace("-", "");

  StarterFixture(TestDatabase database) {
    this.database = database;
  }

  /** Without a Flyway of the service's own. */
  ApplicationContextRunner service() {
    return new ApplicationContextRunner()
        .withConfiguration(BootClasses.service())
        .withConfiguration(
            AutoConfigurations.of(
                OutboxAutoConfiguration.class, OutboxEndpointAutoConfiguration.class))
        .withPropertyValues(
            "spring.datasource.url=" + url(),
            "spring.datasource.username=" + database.server().user(),
            "spring.datasource.password=" + database.server().password(),
            "spring.datasource.type=" + HikariDataSource.class.getName(),
            "spring.datasource.hikari.minimum-idle=1", // each is a server process
            "spring.flyway.enabled=false",
            "outbox4j.schema=" + schema);
  }

  String url() {
    return "jdbc:postgresql://%s:%d/%s"
        .formatted(database.server().host(), database.server().port(), database.name());
  }

  long rows(String table) {
    return database.count(schema + "." + table);
  }
}
