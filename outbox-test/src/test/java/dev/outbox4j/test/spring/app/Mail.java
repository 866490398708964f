package dev.outbox4j.test.spring.app;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.spring.OutboxHandler;
import dev.outbox4j.spring.OutboxTemplate;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

/** Publishes and handles. */
@Service
class Mail {
  final List<String> sent = new CopyOnWriteArrayList<>();
  volatile Throwable failure;
  private final OutboxTemplate outbox;

  Mail(OutboxTemplate outbox) {
    this.outbox = outbox;
  }

  /** A body. */
  record Letter(String to) {}

  @Transactional
  void post(String to) {
    outbox.publish(OutboxMessage.to("mail").type("letter").body(new Letter(to)).build());
  }

  List<String> sent() {
    return sent;
  }

  void failWith(Throwable thrown) {
    failure = thrown;
  }

  void reset() {
    sent.clear();
    failure = null;
  }

  @OutboxHandler(queue = "mail", type = "letter")
  void send(Letter letter) throws Throwable {
    if (failure != null) {
      throw failure;
    }
    sent.add(letter.to());
  }
}
