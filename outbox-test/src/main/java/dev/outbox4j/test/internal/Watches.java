package dev.outbox4j.test.internal;

import dev.outbox4j.spi.LookAhead.Watch;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/** Who is on watch of which queue and who is in reserve; guarded by its store. */
final class Watches {
  private static final Duration FORGOTTEN = Duration.ofHours(1);

  private final Map<String, Map<String, Place>> queues = new HashMap<>();

  /**
   * What a subscriber has said of itself on a queue.
   *
   * @param onWatch true if it claims the watch, false if it is in reserve
   * @param wakeAt until when it sleeps and is to be notified
   * @param until until when it keeps its place
   */
  private record Place(boolean onWatch, Instant wakeAt, Instant until) {
    boolean isLive(Instant now) {
      return until.isAfter(now);
    }

    boolean holdsWatch(Instant now) {
      return onWatch && isLive(now);
    }
  }

  /** Goes on watch, unless another has it: of two that have it, the first by name keeps it. */
  void sleep(String queue, String owner, Instant now, Duration wakeIn) {
    boolean mine = holdsWatch(queue, owner, now);
    boolean taken =
        places(queue).entrySet().stream()
            .anyMatch(
                other ->
                    !other.getKey().equals(owner)
                        && other.getValue().holdsWatch(now)
                        && (!mine || other.getKey().compareTo(owner) < 0));
    Instant until = now.plus(wakeIn);
    places(queue).put(owner, new Place(!taken, taken ? Instant.MIN : until, until));
  }

  /** Needs no notification, and keeps its place for a time. */
  void awake(String queue, String owner, Instant now, Duration keptFor) {
    boolean mine = holdsWatch(queue, owner, now);
    places(queue).computeIfPresent(owner, (name, place) -> new Place(mine, now, now.plus(keptFor)));
  }

  Watch watch(String queue, String owner, Instant now) {
    if (holdsWatch(queue, owner, now)) {
      return Watch.MINE;
    }
    return places(queue).values().stream().anyMatch(place -> place.holdsWatch(now))
        ? Watch.TAKEN
        : Watch.VACANT;
  }

  /** Gives the watch up, and returns whom to wake instead. */
  Optional<String> pass(String queue, String owner, Instant now) {
    places(queue).computeIfPresent(owner, (name, place) -> new Place(false, Instant.MIN, now));
    return reserve(queue, owner, now);
  }

  /** Forgets an owner, and returns whom to wake instead. */
  List<String> forget(String owner, Instant now) {
    List<String> reserves = new ArrayList<>();
    queues.forEach(
        (queue, places) -> {
          Place place = places.remove(owner);
          if (place != null && place.onWatch()) {
            reserve(queue, owner, now).ifPresent(reserves::add);
          }
          places.values().removeIf(old -> old.until().isBefore(now.minus(FORGOTTEN)));
        });
    return reserves;
  }

  /** Tells whether anybody wants to be notified of a row that is due then. */
  boolean anySleepsPast(String queue, Instant due) {
    return places(queue).values().stream().anyMatch(place -> place.wakeAt().isAfter(due));
  }

  boolean sleeps(String queue, String owner, Instant now) {
    Place place = places(queue).get(owner);
    return place != null && place.wakeAt().isAfter(now);
  }

  private Optional<String> reserve(String queue, String owner, Instant now) {
    return places(queue).entrySet().stream()
        .filter(other -> !other.getKey().equals(owner))
        .filter(other -> !other.getValue().onWatch() && other.getValue().isLive(now))
        .max(Map.Entry.comparingByValue(Comparator.comparing(Place::until)))
        .map(Map.Entry::getKey);
  }

  private boolean holdsWatch(String queue, String owner, Instant now) {
    Place place = places(queue).get(owner);
    return place != null && place.holdsWatch(now);
  }

  private Map<String, Place> places(String queue) {
    return queues.computeIfAbsent(queue, name -> new TreeMap<>());
  }
}
