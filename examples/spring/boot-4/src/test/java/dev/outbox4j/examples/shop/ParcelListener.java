package dev.outbox4j.examples.shop;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.spring.OutboxTemplate;
import jakarta.persistence.PostPersist;
import jakarta.persistence.PostUpdate;
import jakarta.persistence.PreUpdate;

/** Publishes when JPA tells of a change, which may be while the commit flushes. */
class ParcelListener {
  private final OutboxTemplate outbox;

  ParcelListener(OutboxTemplate outbox) {
    this.outbox = outbox;
  }

  @PostPersist
  @PreUpdate
  @PostUpdate
  void changed(Parcel parcel) {
    outbox.publish(OutboxMessage.to("nobody").type("parcel").body("x").build());
  }
}
