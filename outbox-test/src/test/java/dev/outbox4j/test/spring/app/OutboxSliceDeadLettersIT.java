package dev.outbox4j.test.spring.app;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.FailureReason;
import dev.outbox4j.test.spring.OutboxTest;
import dev.outbox4j.test.spring.TestOutbox;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.test.context.NestedTestConfiguration;
import org.springframework.test.context.NestedTestConfiguration.EnclosingConfiguration;

/** Dead letters are looked for where the properties say that they go. */
@NestedTestConfiguration(EnclosingConfiguration.OVERRIDE)
@Tag("once")
class OutboxSliceDeadLettersIT {

  @Nested
  @OutboxTest(
      properties = {
        "outbox4j.dead-letter-schema=graveyard",
        "outbox4j.dead-letter-table=lost",
        "outbox4j.subscriber.retry.attempts=1"
      })
  class InASchemaOfTheirOwn {
    @Autowired Mail mail;
    @Autowired TestOutbox outbox;

    @Test
    void areFound() {
      outbox.assertThatOutbox().hasNoDeadLetters("mail");
      mail.failWith(new IllegalStateException("closed"));
      mail.post("a");
      outbox.drain("mail");
      outbox.assertThatOutbox().hasDeadLetter("mail", "letter", FailureReason.RETRY_TERMINAL);
    }
  }

  @Nested
  @OutboxTest(
      properties = {
        "outbox4j.delete-terminal-failures=true",
        "outbox4j.subscriber.retry.attempts=1"
      })
  class Deleted {
    @Autowired Mail mail;
    @Autowired TestOutbox outbox;

    @Test
    void areNotLookedForWhereNoneEverIs() {
      mail.failWith(new IllegalStateException("closed"));
      mail.post("a");
      assertThat(outbox.drain("mail").deadLettered()).isEqualTo(1);
      assertThatThrownBy(() -> outbox.assertThatOutbox().isEmpty("mail").hasNoDeadLetters("mail"))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("messages that fail for good are deleted here");
    }
  }
}
