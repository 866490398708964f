package dev.outbox4j.dlq.engine;

import dev.outbox4j.Delivery;
import dev.outbox4j.FailureReason;
import dev.outbox4j.SubscriberEvents;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/** Remembers what a subscriber told its observers. */
final class RecordedEvents implements SubscriberEvents {
  final AtomicInteger acked = new AtomicInteger();
  final AtomicInteger claims = new AtomicInteger();
  final AtomicInteger renewed = new AtomicInteger();
  final AtomicInteger released = new AtomicInteger();
  final AtomicInteger drainTimeouts = new AtomicInteger();
  final AtomicInteger handlerTimeouts = new AtomicInteger();
  final AtomicInteger connects = new AtomicInteger();
  final AtomicInteger disconnects = new AtomicInteger();
  final List<Duration> retried = new CopyOnWriteArrayList<>();
  final List<Duration> rescheduled = new CopyOnWriteArrayList<>();
  final List<String> deadLettered = new CopyOnWriteArrayList<>();
  final List<Phase> leaseLost = new CopyOnWriteArrayList<>();
  final List<Phase> outcomeUnknown = new CopyOnWriteArrayList<>();
  final List<String> storeFailed = new CopyOnWriteArrayList<>();

  @Override
  public void claimed(String subscriber, int rows, Duration took) {
    claims.incrementAndGet();
  }

  @Override
  public void acked(String subscriber, Delivery delivery) {
    acked.incrementAndGet();
  }

  @Override
  public void retried(String subscriber, Delivery delivery, Duration delay) {
    retried.add(delay);
  }

  @Override
  public void rescheduled(String subscriber, Delivery delivery, Duration delay) {
    rescheduled.add(delay);
  }

  @Override
  public void deadLettered(
      String subscriber, Delivery delivery, FailureReason reason, boolean written) {
    deadLettered.add(reason.code() + (written ? "" : " (deleted)"));
  }

  @Override
  public void leaseLost(String subscriber, Delivery delivery, Phase phase) {
    leaseLost.add(phase);
  }

  @Override
  public void outcomeUnknown(String subscriber, Delivery delivery, Phase phase) {
    outcomeUnknown.add(phase);
  }

  @Override
  public void renewed(String subscriber, int rows) {
    renewed.addAndGet(rows);
  }

  @Override
  public void released(String subscriber, int rows) {
    released.addAndGet(rows);
  }

  @Override
  public void storeFailed(String subscriber, String operation, Throwable cause) {
    storeFailed.add(operation + ": " + cause.getMessage());
  }

  @Override
  public void listenerConnected(String subscriber, boolean again) {
    connects.incrementAndGet();
  }

  @Override
  public void listenerDisconnected(String subscriber, Throwable cause) {
    disconnects.incrementAndGet();
  }

  @Override
  public void handlerTimedOut(String subscriber, Delivery delivery) {
    handlerTimeouts.incrementAndGet();
  }

  @Override
  public void drainTimedOut(String subscriber, int left) {
    drainTimeouts.incrementAndGet();
  }
}
