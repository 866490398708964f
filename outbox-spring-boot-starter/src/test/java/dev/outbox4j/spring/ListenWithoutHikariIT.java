package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** Where subscribers listen if Boot makes another data source than HikariCP. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class ListenWithoutHikariIT extends StarterFixture {

  ListenWithoutHikariIT(TestDatabase database) {
    super(database);
  }

  static final class Mail {
    @OutboxHandler(queue = "mail", type = "sent")
    void handle(String body) {}
  }

  private ApplicationContextRunner withoutHikari() {
    return service()
        .withBean(Mail.class)
        .withPropertyValues("spring.datasource.type=" + PGSimpleDataSource.class.getName());
  }

  @Test
  void doesNotGuessThePlaceFromWhatBootWasTold() {
    withoutHikari()
        .run(
            context -> {
              FailureAnalysis analysis =
                  new OutboxFailureAnalyzer().analyze(context.getStartupFailure());
              assertThat(analysis.getDescription()).contains("there is no place to listen at");
              assertThat(analysis.getAction()).contains("Set outbox4j.listen.url");
            });
  }

  @Test
  void listensWithThePropertiesOfTheDataSourceIfTheyAreNamed() {
    withoutHikari()
        .withPropertyValues(
            "outbox4j.listen.url=${spring.datasource.url}",
            "outbox4j.listen.username=${spring.datasource.username}",
            "outbox4j.listen.password=${spring.datasource.password}")
        .run(
            context -> {
              assertThat(context).hasNotFailed().hasSingleBean(PGSimpleDataSource.class);
              await()
                  .until(
                      () ->
                          context
                              .getBean(OutboxLifecycle.class)
                              .health()
                              .get(0)
                              .listener()
                              .name()
                              .equals("UP"));
            });
  }
}
