package dev.outbox4j.benchmarks.spi;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.stream.Stream;

/**
 * Several subscribers of one queue, each with connections of its own, beside writers at an even
 * pace. All in this process: so commit and handler are on one clock.
 */
final class HerdTask {
  private static final long FIRST = 1L << 40;
  private static final int PATIENCE_SECONDS = 30;

  private final List<Member> members = new ArrayList<>();
  private final Publisher publisher;
  private final Bench bench;
  private final String channel;

  /** Takes contestants that have not been started. */
  HerdTask(List<Consuming> subscribers, Publisher publisher, Bench bench, String channel) {
    this.publisher = publisher;
    this.bench = bench;
    this.channel = channel;
    subscribers.forEach(subscriber -> members.add(new Member(subscriber, members.size())));
  }

  Numbers run(int bytes, int rate, int warmUpSeconds, int seconds, int writers) throws Exception {
    int warmUp = warmUpSeconds * rate;
    int count = warmUp + seconds * rate;
    PacedWriters.Load load = new PacedWriters.Load(FIRST, count, bytes, rate, 1);
    AtomicLongArray sent = new AtomicLongArray(count);
    AtomicLong start = new AtomicLong();
    Latencies fromCommit = new Latencies(count);
    Latencies fromSchedule = new Latencies(count);
    CountingSink sink =
        new CountingSink(
            FIRST,
            count,
            false,
            false,
            sequence -> {
              int message = (int) (sequence - FIRST);
              if (message >= warmUp) {
                long now = System.nanoTime();
                fromCommit.record(now - sent.get(message));
                fromSchedule.record(now - start.get() - load.instant(message));
              }
            });
    ProcessMeter meter = new ProcessMeter();
    for (Member member : members) {
      member.start(sink);
    }
    try (Notifications notifications =
            new Notifications(bench.dataSource().getConnection(), channel);
        PacedWriters publishing = new PacedWriters(bench, writers)) {
      start.set(System.nanoTime() + 1_000_000_000L);
      publishing.start(publisher, load, start.get(), sent::set);
      PacedWriters.pace(start.get() + warmUpSeconds * 1_000_000_000L);
      meter.restart();
      HerdCounts before = counts(notifications);
      PacedWriters.pace(start.get() + (warmUpSeconds + seconds) * 1_000_000_000L);
      HerdCounts after = counts(notifications);
      Numbers numbers = meter.read(after.handled() - before.handled());
      publishing.await();
      boolean complete = sink.await(PATIENCE_SECONDS);
      fromCommit.summary(numbers, "latency");
      fromSchedule.summary(numbers, "scheduled");
      return after.since(before, numbers).with("complete", complete ? 1 : 0);
    } finally {
      for (Member member : members) {
        member.subscriber.stop();
      }
    }
  }

  private HerdCounts counts(Notifications notifications) throws SQLException {
    return new HerdCounts(
        members.stream().map(member -> member.handled.get()).toList(),
        notifications.all(),
        notifications.byName(),
        sum(members.stream().map(member -> member.claims)),
        sum(members.stream().map(member -> member.emptyClaims)));
  }

  private static long sum(Stream<AtomicLong> counters) {
    return counters.mapToLong(AtomicLong::get).sum();
  }

  /** One subscriber and what it has done. */
  private final class Member {
    private final Consuming subscriber;
    private final Bench own;
    private final AtomicLong handled = new AtomicLong();
    private final AtomicLong claims = new AtomicLong();
    private final AtomicLong emptyClaims = new AtomicLong();

    Member(Consuming subscriber, int number) {
      this.subscriber = subscriber;
      this.own = HerdTask.this.bench.with("name", "member-" + number);
    }

    void start(Sink all) throws Exception {
      subscriber.start(
          own,
          new Sink() {
            @Override
            public Verdict handle(byte[] payload) {
              handled.incrementAndGet();
              return all.handle(payload);
            }

            @Override
            public void claimed(int rows) {
              claims.incrementAndGet();
              if (rows == 0) {
                emptyClaims.incrementAndGet();
              }
            }
          });
    }
  }
}
