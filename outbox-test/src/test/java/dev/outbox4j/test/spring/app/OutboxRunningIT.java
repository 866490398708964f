package dev.outbox4j.test.spring.app;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.test.spring.AutoConfigureOutboxTest;
import dev.outbox4j.test.spring.TestOutbox;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.test.annotation.DirtiesContext;

/** The whole service, whose subscribers run as in production. */
@SpringBootTest
@AutoConfigureOutboxTest(autoStart = true)
@DirtiesContext // closed while the server still runs
class OutboxRunningIT {
  @Autowired Mail mail;
  @Autowired Unrelated unrelated;
  @Autowired TestOutbox outbox;
  @Autowired JdbcTemplate jdbc;

  @Test
  void waitsForSubscribersAndRefusesToTakeTheirPlace() {
    mail.reset();
    mail.post("a");
    outbox.awaitDrained("mail");
    assertThat(mail.sent()).containsExactly("a");
    assertThat(unrelated).isNotNull();
    assertThatThrownBy(() -> outbox.drain("mail"))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("awaitDrained");
  }

  @Test
  void waitsUntilNothingIsLeft() {
    mail.reset();
    mail.post("b");
    outbox.awaitEmpty("mail");
    assertThat(mail.sent()).containsExactly("b");
    outbox.assertThatOutbox().isEmpty("mail").hasNoDeadLetters("mail");
  }

  @RepeatedTest(2) // the second finds asleep whom the first has left so, or nobody would wake it
  void leavesSleepersAlone(RepetitionInfo repetition) {
    if (repetition.getCurrentRepetition() == 1) {
      jdbc.update(
          "insert into outbox_sleepers values ('mail', 'sleeper', now() + interval '1 h', false,"
              + " now() + interval '1 h')");
    }
    assertThat(
            jdbc.queryForObject(
                "select count(*) from outbox_sleepers where subscriber = 'sleeper'", Integer.class))
        .isOne();
  }

  @Test
  void refusesToWaitForAQueueThatNobodyHandles() {
    for (ThrowingCallable wait :
        List.<ThrowingCallable>of(
            () -> outbox.awaitDrained("mail", "male"), () -> outbox.awaitEmpty("mail", "male"))) {
      assertThatThrownBy(wait)
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContainingAll("[male]", "handled are [mail]");
    }
    assertThatThrownBy(() -> outbox.awaitEmpty())
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("No queue is named");
  }
}
