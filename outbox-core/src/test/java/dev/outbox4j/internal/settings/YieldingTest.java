package dev.outbox4j.internal.settings;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.RateLimit;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** A limit of the library's own and one of the user's hold together. */
class YieldingTest {
  private static class Limit implements RateLimit {
    final Duration next;
    int available = NO_LIMIT;
    int taken;

    Limit(Duration next) {
      this.next = next;
    }

    @Override
    public int available() {
      return available;
    }

    @Override
    public void take(int messages) {
      taken += messages;
    }

    @Override
    public Duration untilNext() {
      return next;
    }
  }

  private static final class Ours extends Limit implements Yielding {
    Ours() {
      super(Duration.ofMillis(50));
    }
  }

  private final Ours ours = new Ours();
  private final Limit users = new Limit(Duration.ofSeconds(1));
  private final RateLimit both = ours.and(users);

  @Test
  void bothAreToldWhatIsTaken() {
    both.take(3);
    both.take(4);
    assertThat(ours.taken).isEqualTo(7);
    assertThat(users.taken).isEqualTo(7);
  }

  @Test
  void bothMustLetPass() {
    users.available = 5;
    assertThat(both.available()).isEqualTo(5);
    ours.available = 0;
    assertThat(both.available()).isZero();
    assertThat(both.untilNext()).isEqualTo(ours.next);
    ours.available = RateLimit.NO_LIMIT;
    users.available = 0;
    assertThat(both.available()).isZero();
    assertThat(both.untilNext()).isEqualTo(users.next);
  }
}
