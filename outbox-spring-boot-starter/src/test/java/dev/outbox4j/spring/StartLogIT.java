package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** What the log says of a start where something may be missing or was made. */
@ExtendWith({PostgresExtension.class, OutputCaptureExtension.class})
@Tag("once")
class StartLogIT extends StarterFixture {

  StartLogIT(TestDatabase database) {
    super(database);
  }

  static class Shop {
    @OutboxHandler(queue = "orders", type = "placed")
    void ship(String body) {}
  }

  @Test
  void saysWhichTablesWereMadeAndNothingWhenTheyAreThere(CapturedOutput output) {
    String made = "to the outbox " + schema + ".outbox and its dead letters";
    service().run(context -> assertThat(output.getAll()).containsOnlyOnce(made));
    service().run(context -> assertThat(output.getAll()).containsOnlyOnce(made));
  }

  @Test
  void saysThatThereIsNoHandler(CapturedOutput output) {
    service().withBean(Shop.class).run(context -> assertThat(output).contains("started as"));
    assertThat(output.getAll()).doesNotContain("No @OutboxHandler was found");
    service().run(context -> assertThat(output).contains("No @OutboxHandler was found"));
  }
}
