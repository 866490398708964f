package dev.outbox4j.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.spi.BucketStore.Owned;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** A bucket is read anew only once its keys have been forgotten. */
class BucketScansTest {
  private final Owned owned = new Owned(1, 1, 0, 0);
  private final Map<Integer, Owned> readable = Map.of(1, owned);
  private final BucketScans scans = new BucketScans();

  @Test
  void aBucketThatIsForgottenIsReadAnew() {
    scans.begin(new BucketScan(owned, List.of()));
    assertThat(scans.heed(readable)).isEmpty();
    scans.forget(Set.of(1), () -> {});
    assertThat(scans.isRead(1, owned)).isFalse();
    assertThat(scans.heed(readable)).containsExactly(owned);
    scans.begin(new BucketScan(owned, List.of()));
    assertThat(scans.isRead(1, owned)).isTrue();
  }

  @Test
  void whileItIsBeingForgottenItIsNotReadAnew() {
    scans.begin(new BucketScan(owned, List.of()));
    scans.forget(
        Set.of(1),
        () -> {
          assertThat(scans.heed(readable)).isEmpty();
          assertThat(scans.isForgotten(1)).isTrue();
        });
    assertThat(scans.heed(readable)).containsExactly(owned);
  }
}
