package dev.outbox4j.monitor;

import java.time.Instant;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Which instances are asked for. Immutable; each setting returns a new one. What is said more than
 * once is as it was said last, and all that is said must be so.
 *
 * <p>The pages are in the order in which the instances were created, or in that of their ids if a
 * prefix of ids or a parent is given. An instance that is there all the while is on exactly one of
 * them, unless it is restarted or its status changes between. A page ends before its limit where it
 * has about 8 MB; it has one instance at least if there is one.
 */
public final class MonitorQuery {
  private static final int MAX_LIMIT = 1_000;
  private static final MonitorQuery ALL = new MonitorQuery(new Said());

  /** What instances have that may be large, and is read if it is asked for. */
  public enum Value {
    /** What they were started with. */
    INPUT,
    /** What their latest checks have left. */
    STATE,
    /** What they have found. */
    OUTPUT
  }

  private final Said said;

  private MonitorQuery(Said said) {
    this.said = said;
  }

  /** What was said; mutable while it is built. */
  private static final class Said {
    private Set<MonitorStatus> statuses = Set.of();
    private @Nullable String type;
    private @Nullable Instant from;
    private @Nullable Instant to;
    private @Nullable String idPrefix;
    private @Nullable String parent;
    private Set<Value> values = Set.of();
    private int limit = 100;
    private @Nullable String after;

    private Said copy() {
      Said copy = new Said();
      copy.statuses = statuses;
      copy.type = type;
      copy.from = from;
      copy.to = to;
      copy.idPrefix = idPrefix;
      copy.parent = parent;
      copy.values = values;
      copy.limit = limit;
      copy.after = after;
      return copy;
    }
  }

  private MonitorQuery changed(Consumer<Said> change) {
    Said copy = said.copy();
    change.accept(copy);
    return new MonitorQuery(copy);
  }

  /** {@return all instances, 100 at a time} */
  public static MonitorQuery all() {
    return ALL;
  }

  /**
   * Only those of a status.
   *
   * @param statuses the statuses, of which one must be so; none for any
   * @return the changed query
   */
  public MonitorQuery status(MonitorStatus... statuses) {
    Set<MonitorStatus> wanted = EnumSet.noneOf(MonitorStatus.class);
    wanted.addAll(List.of(statuses));
    return changed(to -> to.statuses = Set.copyOf(wanted));
  }

  /**
   * Only those of a type.
   *
   * @param type the type's name
   * @return the changed query
   * @throws IllegalArgumentException if no type can have the name
   */
  public MonitorQuery type(String type) {
    MonitorNames.requireType(type);
    return changed(to -> to.type = type);
  }

  /**
   * Only those that were created then or later.
   *
   * @param from from 1970 to 9999
   * @return the changed query
   * @throws IllegalArgumentException if it is out of range
   */
  public MonitorQuery createdFrom(Instant from) {
    requireWithin("createdFrom", from);
    return changed(to -> to.from = from);
  }

  /**
   * Only those that were created before.
   *
   * @param before from 1970 to 9999
   * @return the changed query
   * @throws IllegalArgumentException if it is out of range
   */
  public MonitorQuery createdBefore(Instant before) {
    requireWithin("createdBefore", before);
    return changed(to -> to.to = before);
  }

  private static void requireWithin(String what, Instant instant) {
    if (instant.isBefore(Instant.EPOCH) || instant.isAfter(MonitorNames.LATEST)) {
      throw new IllegalArgumentException(
          what + " is " + instant + "; it must be from 1970 to 9999");
    }
  }

  /**
   * Only those whose id begins so.
   *
   * @param prefix by the rules of ids
   * @return the changed query
   * @throws IllegalArgumentException if no id begins so
   */
  public MonitorQuery idPrefix(String prefix) {
    MonitorNames.requirePrefix("prefix", prefix);
    return changed(to -> to.idPrefix = prefix);
  }

  /**
   * Only those that belong to something.
   *
   * @param parent what {@link MonitorStart#parent} was given
   * @return the changed query
   * @throws IllegalArgumentException if no parent can have the name
   */
  public MonitorQuery parent(String parent) {
    MonitorNames.requireId("parent", parent);
    return changed(to -> to.parent = parent);
  }

  /**
   * Asks for values, too, of up to 256 KiB each. A purge reads none.
   *
   * @param values which ones; none if this is not said
   * @return the changed query
   */
  public MonitorQuery with(Value... values) {
    Set<Value> wanted = EnumSet.noneOf(Value.class);
    wanted.addAll(List.of(values));
    return changed(to -> to.values = Set.copyOf(wanted));
  }

  /**
   * Sets how many are on a page at most.
   *
   * @param most 1 to 1,000; default 100
   * @return the changed query
   * @throws IllegalArgumentException if it is out of range
   */
  public MonitorQuery limit(int most) {
    if (most < 1 || most > MAX_LIMIT) {
      throw new IllegalArgumentException("limit is " + most + "; it must be 1 to 1,000");
    }
    return changed(to -> to.limit = most);
  }

  /**
   * Asks for the page that follows.
   *
   * @param continuation what a page of the same query gave
   * @return the changed query
   */
  public MonitorQuery after(String continuation) {
    Objects.requireNonNull(continuation, "continuation");
    return changed(to -> to.after = continuation);
  }

  /** {@return the statuses that are asked for; empty for any} */
  public Set<MonitorStatus> statuses() {
    return said.statuses;
  }

  /** {@return the type that is asked for} */
  public Optional<String> type() {
    return Optional.ofNullable(said.type);
  }

  /** {@return from when on they were created} */
  public Optional<Instant> createdFrom() {
    return Optional.ofNullable(said.from);
  }

  /** {@return before when they were created} */
  public Optional<Instant> createdBefore() {
    return Optional.ofNullable(said.to);
  }

  /** {@return how their ids begin} */
  public Optional<String> idPrefix() {
    return Optional.ofNullable(said.idPrefix);
  }

  /** {@return what they belong to} */
  public Optional<String> parent() {
    return Optional.ofNullable(said.parent);
  }

  /** {@return the values that are asked for} */
  public Set<Value> values() {
    return said.values;
  }

  /** {@return how many are on a page at most} */
  public int limit() {
    return said.limit;
  }

  /** {@return what the page before gave} */
  public Optional<String> after() {
    return Optional.ofNullable(said.after);
  }
}
