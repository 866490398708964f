package dev.outbox4j.test.spring.app;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.FailureReason;
import dev.outbox4j.test.Drained;
import dev.outbox4j.test.spring.OutboxTest;
import dev.outbox4j.test.spring.TestOutbox;
import java.time.Duration;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.context.ApplicationContext;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.annotation.Transactional;

/** Handlers are run by the test. */
@OutboxTest(
    properties = {
      "outbox4j.queues.mail.retry.attempts=2",
      "outbox4j.queues.mail.retry.initial=1h",
      "outbox4j.queues.mail.retry.max=1h",
      "outbox4j.queues.elsewhere.workers=3"
    })
class OutboxSliceIT {
  @Autowired Mail mail;
  @Autowired TestOutbox outbox;
  @Autowired JdbcTemplate jdbc;
  @Autowired ApplicationContext context;

  @BeforeEach
  void reset() {
    mail.reset();
  }

  @RepeatedTest(2) // the second sees nothing of the first
  void handlesWhatWasPublished() {
    mail.post("a");
    outbox
        .assertThatOutbox()
        .hasPublished("mail", "letter", new Mail.Letter("a"))
        .hasPublishedExactly("mail", 1);
    assertThat(outbox.drain("mail").requireNoFailures()).isEqualTo(new Drained(1, List.of(), 0, 0));
    assertThat(mail.sent()).containsExactly("a");
    mail.post("left for the next test");
  }

  @Test
  void aFailureIsRetriedAndThenADeadLetter() {
    IllegalStateException failure = new IllegalStateException("closed");
    mail.failWith(failure);
    mail.post("a");
    assertThat(outbox.drain("mail")).isEqualTo(new Drained(1, List.of(failure), 1, 0));
    outbox.assertThatOutbox().hasNoDeadLetters("mail");
    outbox.advance(Duration.ofMinutes(30));
    assertThat(outbox.drain("mail").runs()).as("runs before it is due").isZero();
    outbox.advance(Duration.ofHours(1)); // more than the jitter makes of it
    assertThat(outbox.drain("mail")).isEqualTo(new Drained(1, List.of(failure), 0, 1));
    outbox
        .assertThatOutbox()
        .isEmpty("mail")
        .hasDeadLetter("mail", "letter", FailureReason.RETRY_TERMINAL);
  }

  @Test
  void timeThatPassesMovesAllInstantsOfAMessage() {
    mail.failWith(new IllegalStateException("closed"));
    mail.post("a");
    outbox.drain("mail");
    jdbc.update("update outbox set expires_at = clock_timestamp() + interval '2 hours'");
    outbox.advance(Duration.ofHours(2));
    assertThat(
            jdbc.queryForObject(
                "select least(clock_timestamp() - created_at, clock_timestamp() - first_attempt_at,"
                    + " clock_timestamp() - last_attempt_at, clock_timestamp() - expires_at + interval '2 hours') >= interval '2 hours' from outbox",
                Boolean.class))
        .isTrue();
    assertThatThrownBy(() -> outbox.advance(Duration.ZERO))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("PT0S");
  }

  @Test
  void anAssertionErrorOfAHandlerFailsTheTest() {
    AssertionError check = new AssertionError("wrong");
    mail.failWith(check);
    mail.post("a");
    assertThatThrownBy(() -> outbox.drain("mail")).isSameAs(check);
  }

  @Test
  void refusesAQueueThatNobodyHandlesAndNamesThoseThatAre() {
    assertThatThrownBy(() -> outbox.drain("male"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("'male'")
        .hasMessageContaining("[mail]");
  }

  @Test
  @Transactional
  void refusesToDrainInATransactionOfTheTest() {
    mail.post("a");
    assertThatThrownBy(() -> outbox.drain("mail"))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("take @Transactional off the test");
  }

  @Test
  @Transactional
  void refusesToLookFromATransactionOfTheTest() {
    mail.post("a");
    assertThatThrownBy(() -> outbox.assertThatOutbox())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContainingAll("look from outside", "take @Transactional off the test");
  }

  @Test
  void refusesToWaitWhereNobodyRuns() {
    for (ThrowingCallable wait :
        List.<ThrowingCallable>of(
            () -> outbox.awaitDrained("mail"), () -> outbox.awaitEmpty("mail"))) {
      assertThatThrownBy(wait)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContainingAll("No subscriber was started", "drain(...)", "autoStart = true");
    }
  }

  @Test
  void bringsNoOtherComponent() {
    assertThat(context.getBeanNamesForType(Unrelated.class)).isEmpty();
  }

  @Nested
  class InANestedClass {
    @Autowired Mail sameMail;
    @Autowired TestOutbox sameOutbox;

    @Test
    void sharesContextAndDatabase() {
      assertThat(sameMail).isSameAs(mail);
      sameMail.post("b");
      sameOutbox.drain("mail");
      assertThat(sameMail.sent()).containsExactly("b");
    }
  }
}
