package dev.outbox4j.monitor;

import java.time.Instant;
import java.util.List;
import java.util.Optional;

/**
 * One attempt at one check of an instance. Thread-safe. Instants are the server's.
 *
 * @param <I> the input of the instance
 */
public interface MonitorCall<I> {

  /** {@return the type's name} */
  String type();

  /** {@return the instance's id} */
  String id();

  /** {@return which execution of this id it is; it grows with each start and restart} */
  long execution();

  /** {@return what the instance was started with} */
  I input();

  /** {@return what the check before has left by {@link MonitorResult#withState}, if it did} */
  Optional<Json> state();

  /**
   * Reads what the check before has left.
   *
   * @param type what to make of it
   * @param <S> the type
   * @return the state, if there is one
   * @throws IllegalStateException if the monitors have no codec
   * @throws dev.outbox4j.spi.UndecodableException if the state is not of that type
   */
  <S> Optional<S> state(Class<S> type);

  /**
   * Reads a value, such as what an event brings.
   *
   * @param value the value
   * @param type what to make of it
   * @param <T> the type
   * @return the value
   * @throws IllegalStateException if the monitors have no codec
   * @throws dev.outbox4j.spi.UndecodableException if the value is not of that type
   */
  <T> T read(Json value, Class<T> type);

  /** {@return which check of the execution this is, counted from 1} */
  long iteration();

  /** {@return which attempt at this check this is, counted from 1} */
  int attempt();

  /** {@return when this execution was started} */
  Instant createdAt();

  /** {@return when the instance expires, if it does} */
  Optional<Instant> expiresAt();

  /**
   * {@return the events that no check has seen yet, the earliest first} They count as seen once the
   * result of this check is committed.
   */
  List<RaisedEvent> events();

  /**
   * Returns the events of a name that no check has seen yet.
   *
   * @param name what has happened
   * @return the events, the earliest first
   */
  default List<RaisedEvent> events(String name) {
    return events().stream().filter(event -> event.name().equals(name)).toList();
  }

  /**
   * Tells whether the check is to stop: its node stops, or its lease is lost. A check that takes
   * long should look, and throw: it then comes again.
   *
   * @return true if it should end
   */
  boolean isCancelled();

  /**
   * Tells whether the result of this attempt changes nothing any more, since its lease is lost.
   * That somebody has terminated the instance meanwhile is not told here.
   *
   * @return true if its result is dropped
   */
  boolean isFenced();
}
