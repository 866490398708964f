package dev.outbox4j.examples.shop;

import jakarta.persistence.Entity;
import jakarta.persistence.EntityListeners;
import jakarta.persistence.Id;

/** An entity whose listener publishes. */
@Entity
@EntityListeners(ParcelListener.class)
class Parcel {
  @Id private String id;
  private String place;

  protected Parcel() {}

  Parcel(String id, String place) {
    this.id = id;
    this.place = place;
  }

  void moveTo(String other) {
    place = other;
  }
}
