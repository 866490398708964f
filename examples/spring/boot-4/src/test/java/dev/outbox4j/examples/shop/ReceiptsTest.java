package dev.outbox4j.examples.shop;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.spring.OutboxHandler;
import dev.outbox4j.spring.OutboxTemplate;
import dev.outbox4j.test.spring.OutboxTest;
import dev.outbox4j.test.spring.TestOutbox;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.context.annotation.Import;
import org.springframework.stereotype.Component;
import org.springframework.transaction.support.TransactionTemplate;

/** A bean that a handler needs, and that the slice leaves out. */
// tag::import
@OutboxTest
@Import({ReceiptsTest.Receipts.class, ReceiptsTest.RecordedMails.class})
class ReceiptsTest {
  @Autowired RecordedMails mails;
  @Autowired TestOutbox outbox;

  @Test
  void sendsAReceipt() {
    pay("o-1");

    outbox.drain("receipts").requireNoFailures();
    assertThat(mails.sent).containsExactly("receipt of o-1");
  }
  // end::import

  @Autowired OutboxTemplate template;
  @Autowired TransactionTemplate transaction;

  private void pay(String id) {
    transaction.executeWithoutResult(
        status ->
            template.publish(
                OutboxMessage.to("receipts")
                    .type("order.paid")
                    .body(new OrderPlaced(id, 1250, Instant.now()))
                    .build()));
  }

  /** What sends mails. */
  interface Mails {
    void send(String text);
  }

  @Component
  static class RecordedMails implements Mails {
    private final List<String> sent = new CopyOnWriteArrayList<>();

    @Override
    public void send(String text) {
      sent.add(text);
    }
  }

  @Component
  static class Receipts {
    private final Mails mails;

    Receipts(Mails mails) {
      this.mails = mails;
    }

    @OutboxHandler(queue = "receipts", type = "order.paid")
    public void send(OrderPlaced paid) {
      mails.send("receipt of " + paid.id());
    }
  }
}
