package dev.outbox4j.test.spring.app;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.test.spring.AutoConfigureOutboxTest;
import dev.outbox4j.test.spring.TestOutbox;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.test.annotation.DirtiesContext;

/** The whole service, whose subscribers run as in production. */
@SpringBootTest
@AutoConfigureOutboxTest(autoStart = true)
@DirtiesContext // closed while the server still runs
class OutboxRunningIT {
  @Autowired Mail mail;
  @Autowired Unrelated unrelated;
  @Autowired TestOutbox outbox;

  @Test
  void waitsForSubscribersAndRefusesToTakeTheirPlace() {
    mail.post("a");
    outbox.awaitDrained("mail");
    assertThat(mail.sent()).containsExactly("a");
    assertThat(unrelated).isNotNull();
    assertThatThrownBy(() -> outbox.drain("mail"))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("awaitDrained");
  }
}
