package dev.outbox4j.examples.shop;

import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.Id;
import jakarta.persistence.Version;
import org.jspecify.annotations.Nullable;

/** An order as it is kept. */
@Entity
public class PurchaseOrder {
  /** Where an order is in its life. */
  public enum State {
    PLACED,
    SHIPPED
  }

  @Id private String id;
  private long cents;

  @Enumerated(EnumType.STRING)
  private State state;

  @Version private @Nullable Integer version; // null until it is saved

  protected PurchaseOrder() {}

  PurchaseOrder(String id, long cents) {
    this.id = id;
    this.cents = cents;
    this.state = State.PLACED;
  }

  public String getId() {
    return id;
  }

  public long getCents() {
    return cents;
  }

  public State getState() {
    return state;
  }

  /** Shipping twice is shipping once. */
  void ship() {
    state = State.SHIPPED;
  }
}
