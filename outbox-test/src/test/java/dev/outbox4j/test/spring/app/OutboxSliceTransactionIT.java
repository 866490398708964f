package dev.outbox4j.test.spring.app;

import dev.outbox4j.test.spring.OutboxTest;
import dev.outbox4j.test.spring.TestOutbox;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.test.context.transaction.AfterTransaction;
import org.springframework.transaction.annotation.Transactional;

/** A test that asks for a transaction of its own. */
@OutboxTest
@Tag("once")
class OutboxSliceTransactionIT {
  @Autowired Mail mail;
  @Autowired TestOutbox outbox;

  @Test
  @Transactional
  void nothingThatItPublishesIsLeftAfterIt() {
    mail.post("a");
  }

  @AfterTransaction
  void hasRolledBack() {
    outbox.assertThatOutbox().hasPublishedExactly("mail", 0);
  }
}
