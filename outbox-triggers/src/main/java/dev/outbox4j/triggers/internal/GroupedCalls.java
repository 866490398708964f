package dev.outbox4j.triggers.internal;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Calls that many threads make, in groups: who comes while a group is on its way is in the next
 * one, which one of its threads sends for all. If a group fails, each of its threads makes its call
 * alone, so that none fails for another, unless what failed concerns all of them. Thread-safe.
 *
 * @param <Q> what is asked
 * @param <R> the answer
 */
public final class GroupedCalls<Q, R> {
  private final Function<List<Q>, List<@Nullable R>> call;
  private final Predicate<RuntimeException> concernsAll;
  private final int most;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition ended = lock.newCondition();
  private final List<Asked<Q, R>> waiting = new ArrayList<>();
  private boolean onItsWay;

  /**
   * Creates the groups.
   *
   * @param call answers each of a list in its order; its time is limited
   * @param concernsAll whether a failure of a group is one of each of its calls
   */
  public GroupedCalls(
      Function<List<Q>, List<@Nullable R>> call, Predicate<RuntimeException> concernsAll) {
    this(call, concernsAll, Integer.MAX_VALUE);
  }

  /**
   * Creates the groups.
   *
   * @param call answers each of a list in its order; its time is limited
   * @param concernsAll whether a failure of a group is one of each of its calls
   * @param most how many are in a group at most
   */
  public GroupedCalls(
      Function<List<Q>, List<@Nullable R>> call,
      Predicate<RuntimeException> concernsAll,
      int most) {
    this.call = call;
    this.concernsAll = concernsAll;
    this.most = most;
  }

  private enum State {
    WAITING,
    ANSWERED,
    FAILED
  }

  /** What one thread asked. Written under the lock. */
  private static final class Asked<Q, R> {
    private final Q question;
    private State state = State.WAITING;
    private @Nullable R answer;
    private @Nullable RuntimeException failure;

    Asked(Q question) {
      this.question = question;
    }
  }

  /** Returns the answer, or throws what the call throws for this question alone. */
  public @Nullable R call(Q question) {
    Asked<Q, R> own = new Asked<>(question);
    join(own);
    for (List<Asked<Q, R>> group = next(own); !group.isEmpty(); group = next(own)) {
      send(group);
    }
    if (own.failure != null) {
      throw own.failure;
    }
    return own.state == State.ANSWERED ? own.answer : call.apply(List.of(question)).get(0);
  }

  /** {@return how many wait for the call that is on its way} */
  public int waiting() {
    lock.lock();
    try {
      return waiting.size();
    } finally {
      lock.unlock();
    }
  }

  private void join(Asked<Q, R> own) {
    lock.lock();
    try {
      waiting.add(own);
    } finally {
      lock.unlock();
    }
  }

  /**
   * Returns the group that this thread is to send; none if its own question was answered. Its own
   * is not in a group that is full of earlier ones.
   */
  private List<Asked<Q, R>> next(Asked<Q, R> own) {
    lock.lock();
    try {
      while (onItsWay && own.state == State.WAITING) {
        ended.awaitUninterruptibly();
      }
      if (own.state != State.WAITING) {
        return List.of();
      }
      List<Asked<Q, R>> first = waiting.subList(0, Math.min(most, waiting.size()));
      List<Asked<Q, R>> group = List.copyOf(first);
      first.clear();
      onItsWay = true;
      return group;
    } finally {
      lock.unlock();
    }
  }

  private void send(List<Asked<Q, R>> group) {
    List<@Nullable R> answers = null;
    RuntimeException failure = null;
    try {
      answers = call.apply(group.stream().map(asked -> asked.question).toList());
    } catch (RuntimeException e) {
      failure = group.size() == 1 || concernsAll.test(e) ? e : null;
    } finally {
      end(group, answers, failure);
    }
  }

  private void end(
      List<Asked<Q, R>> group,
      @Nullable List<@Nullable R> answers,
      @Nullable RuntimeException failure) {
    lock.lock();
    try {
      for (int i = 0; i < group.size(); i++) {
        Asked<Q, R> asked = group.get(i);
        asked.state = answers == null ? State.FAILED : State.ANSWERED;
        asked.answer = answers == null ? null : answers.get(i);
        asked.failure = failure;
      }
      onItsWay = false;
      ended.signalAll();
    } finally {
      lock.unlock();
    }
  }
}
