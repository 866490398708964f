package dev.outbox4j.triggers.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Who is in which group, and what becomes of a group that fails. */
class GroupedCallsTest {
  private static final int MANY = 10;

  private final List<List<Integer>> groups = new CopyOnWriteArrayList<>();
  private final CountDownLatch go = new CountDownLatch(1);
  private final ExecutorService threads = Executors.newFixedThreadPool(MANY + 1);
  private @Nullable RuntimeException ofGroups;
  private @Nullable Error ofTheFirst;

  private final GroupedCalls<Integer, String> calls =
      new GroupedCalls<>(this::answer, ArithmeticException.class::isInstance);

  @AfterEach
  void tearDown() {
    go.countDown();
    threads.shutdownNow();
  }

  private List<@Nullable String> answer(List<Integer> asked) {
    groups.add(asked);
    if (groups.size() == 1) {
      awaitGo();
      if (ofTheFirst != null) {
        throw ofTheFirst;
      }
    }
    if (ofGroups != null && asked.size() > 1) {
      throw ofGroups;
    }
    if (asked.equals(List.of(3)) && ofGroups != null) {
      throw new IllegalArgumentException("three");
    }
    List<@Nullable String> answers = new ArrayList<>();
    asked.forEach(each -> answers.add(each == 5 ? null : "to " + each));
    return answers;
  }

  private void awaitGo() {
    try {
      assertThat(go.await(1, TimeUnit.MINUTES)).isTrue();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Those of {@link #MANY} that come while the first is on its way. */
  private List<Future<@Nullable String>> askWhileOneIsOnItsWay() {
    List<Future<@Nullable String>> answers = new ArrayList<>();
    answers.add(threads.submit(() -> calls.call(0)));
    await().until(() -> groups.size() == 1);
    IntStream.rangeClosed(1, MANY)
        .forEach(each -> answers.add(threads.submit(() -> calls.call(each))));
    await().until(() -> calls.waiting() == MANY);
    go.countDown();
    return answers;
  }

  @Test
  void whoComesWhileACallIsOnItsWayIsInTheNextOne() throws Exception {
    List<Future<@Nullable String>> answers = askWhileOneIsOnItsWay();
    for (int i = 0; i <= MANY; i++) {
      assertThat(answers.get(i).get()).isEqualTo(i == 5 ? null : "to " + i);
    }
    assertThat(groups).hasSize(2).first().isEqualTo(List.of(0));
    assertThat(groups.get(1))
        .containsExactlyInAnyOrderElementsOf(IntStream.rangeClosed(1, MANY).boxed().toList());
  }

  @Test
  void noneFailsForAnother() throws Exception {
    ofGroups = new IllegalStateException("of a group");
    List<Future<@Nullable String>> answers = askWhileOneIsOnItsWay();
    for (int i = 0; i <= MANY; i++) {
      Future<@Nullable String> answer = answers.get(i);
      if (i == 3) {
        assertThatThrownBy(answer::get)
            .isInstanceOf(ExecutionException.class)
            .hasRootCauseMessage("three");
      } else {
        assertThat(answer.get()).isEqualTo(i == 5 ? null : "to " + i);
      }
    }
    assertThat(groups).as("one, a group, and each of it").hasSize(2 + MANY);
  }

  @Test
  void aFailureThatConcernsAllIsThrownForEachAtOnce() throws Exception {
    ofGroups = new ArithmeticException("of all");
    List<Future<@Nullable String>> answers = askWhileOneIsOnItsWay();
    assertThat(answers.get(0).get()).isEqualTo("to 0");
    for (int i = 1; i <= MANY; i++) {
      assertThatThrownBy(answers.get(i)::get).hasCause(ofGroups);
    }
    assertThat(groups).hasSize(2);
  }

  @Test
  void anErrorEndsACallAndNotThoseThatCome() throws Exception {
    ofTheFirst = new OutOfMemoryError("of a test");
    List<Future<@Nullable String>> answers = askWhileOneIsOnItsWay();
    assertThatThrownBy(answers.get(0)::get).hasCause(ofTheFirst);
    for (int i = 1; i <= MANY; i++) {
      assertThat(answers.get(i).get()).isEqualTo(i == 5 ? null : "to " + i);
    }
  }
}
