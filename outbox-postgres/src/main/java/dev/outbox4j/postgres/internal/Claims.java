package dev.outbox4j.postgres.internal;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.Range;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.LookAhead;
import dev.outbox4j.spi.ScanBound;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Claims, also where the server refuses to write the lease of some row: then the rows are claimed
 * by halves, until each that is refused stands alone. Thread-safe.
 */
final class Claims {
  private static final Logger log = LoggerFactory.getLogger(Claims.class);
  private static final ScanBound FIRST = new ScanBound(Instant.EPOCH, 0);
  private static final Range NOWHERE = new Range(FIRST, FIRST);

  /** Refused rows at which a claim ends, whether it has found others or not. */
  private static final int MAX_REFUSED = 100;

  private static final int MOST_REMEMBERED = 10_000;

  /** A search that found no row to be at fault is made again after so many times its cost. */
  private static final int COST_SHARE = 10;

  private static final long LONGEST_PAUSE = TimeUnit.SECONDS.toNanos(30);

  /** A failure longer after the last one is a new trouble. */
  private static final long REMEMBERED = TimeUnit.MINUTES.toNanos(5);

  private final Jdbc jdbc;
  private final ClaimStatement statement;
  private final LongSupplier nanoTime;

  /** When claims of which the last one failed may be halved, if the next one fails, too. */
  private final Map<Kind, Long> failed = new ConcurrentHashMap<>();

  /** Rows that were refused while others were leased, so that it is known to be them. */
  private final Set<Long> refusedBefore = ConcurrentHashMap.newKeySet();

  /**
   * Claims that succeed or fail together: others that succeed meanwhile do not show that it was not
   * a row.
   *
   * @param part whether they end below what is due last
   */
  private record Kind(String queue, boolean part) {
    static Kind of(ClaimRequest request) {
      return new Kind(request.queue(), request.range().upTo() != null);
    }
  }

  Claims(Jdbc jdbc, OutboxTable table, LongSupplier nanoTime) {
    this.jdbc = jdbc;
    this.nanoTime = nanoTime;
    this.statement = new ClaimStatement(jdbc.preamble(), table);
  }

  ClaimResult claim(ClaimRequest request) {
    Kind kind = Kind.of(request);
    try {
      ClaimResult result = run(request);
      if (!result.rows().isEmpty()) { // else it may have passed by the row that is at fault
        failed.remove(kind);
      }
      return result;
    } catch (OutboxStoreException e) {
      boolean again = failedBefore(kind);
      if (e.fault() != Fault.ROW && !(again && wasAnswered(e))) {
        throw e;
      }
      return halved(request, kind, e);
    }
  }

  private boolean failedBefore(Kind kind) {
    long now = nanoTime.getAsLong();
    Long mayBeHalvedAt = failed.get(kind);
    if (mayBeHalvedAt != null && now - mayBeHalvedAt < 0) {
      return false;
    }
    failed.put(kind, now);
    return mayBeHalvedAt != null && now - mayBeHalvedAt <= REMEMBERED;
  }

  private ClaimResult halved(ClaimRequest request, Kind kind, OutboxStoreException failure) {
    long begunAt = nanoTime.getAsLong();
    try {
      return new Halves(request).claim(failure);
    } catch (OutboxStoreException noRows) { // or all of them; other queues wait meanwhile
      long now = nanoTime.getAsLong();
      failed.put(kind, now + Math.min(LONGEST_PAUSE, COST_SHARE * (now - begunAt)));
      throw noRows;
    }
  }

  /** Another state than that of a row may be a row's, too: a trigger chooses what it raises. */
  private static boolean wasAnswered(OutboxStoreException e) {
    return !e.outcomeUnknown()
        && (e.fault() == Fault.TRANSIENT
            || e.fault() == Fault.SETUP
            || FencedStatement.isLocked(e));
  }

  private ClaimResult run(ClaimRequest request) {
    return jdbc.run("claim", connection -> statement.execute(connection, request));
  }

  /** One claim by halves. */
  private final class Halves {
    private final ClaimRequest request;
    private final long endAt = nanoTime.getAsLong() + jdbc.networkTimeout().toNanos();
    private final List<ClaimedRow> rows = new ArrayList<>();
    private final Set<Long> refused = new HashSet<>();
    private long bytes;
    private @Nullable ScanBound refusedUpTo;
    private boolean full;
    private boolean outOfSlots;
    private boolean allOfRows = true;
    private Instant at = Instant.EPOCH;

    Halves(ClaimRequest request) {
      this.request = request;
    }

    ClaimResult claim(OutboxStoreException failure) {
      Range rest = request.range();
      while (!isOver()) {
        List<ScanBound> places;
        try {
          places = peek(rest);
        } catch (OutboxStoreException e) {
          if (rows.isEmpty()) {
            throw e;
          }
          full = true;
          break; // what was leased before must be told
        }
        claimEach(places);
        if (places.size() < left()) {
          break;
        }
        rest = new Range(places.get(places.size() - 1), request.range().upTo());
      }
      boolean known = allOfRows || refusedBefore.containsAll(refused);
      if (rows.isEmpty() && (refused.isEmpty() || !known)) {
        throw failure; // it was not a row after all, or it is gone
      }
      if (refusedBefore.size() < MOST_REMEMBERED) {
        refusedBefore.addAll(refused);
      }
      LookAhead ahead = idle();
      return new ClaimResult(rows, isOver(), ahead, at, refused, refusedUpTo, outOfSlots);
    }

    private boolean isOver() {
      full = full || rows.size() >= request.limit() || bytes >= request.maxBytes();
      return full || refused.size() >= MAX_REFUSED || nanoTime.getAsLong() - endAt > 0;
    }

    private int left() {
      return Math.max(1, request.limit() - rows.size());
    }

    private List<ScanBound> peek(Range range) {
      ClaimRequest next = part(range, left());
      return jdbc.run("claim", connection -> statement.peek(connection, next));
    }

    private void claimEach(List<ScanBound> places) {
      if (places.isEmpty() || isOver()) {
        return;
      }
      ScanBound first = places.get(0);
      ScanBound before = new ScanBound(first.availableAt(), first.id() - 1);
      Range range = new Range(before, places.get(places.size() - 1));
      try {
        add(run(part(range, left())));
      } catch (OutboxStoreException e) {
        allOfRows &= e.fault() == Fault.ROW;
        if (e.fault() != Fault.ROW && !wasAnswered(e)) {
          if (rows.isEmpty()) {
            throw e;
          }
          full = true; // what was leased before must be told
        } else if (places.size() == 1) {
          refused.add(first.id());
          refusedUpTo = first; // places come in order
        } else {
          int half = places.size() / 2;
          claimEach(places.subList(0, half));
          claimEach(places.subList(half, places.size()));
        }
      }
    }

    private void add(ClaimResult result) {
      at = result.at();
      rows.addAll(result.rows());
      result.rows().forEach(row -> bytes += row.message().payload().size());
      outOfSlots = outOfSlots || result.outOfSlots();
      full = full || result.full(); // it may have left out a row that is too large for the rest
    }

    private ClaimRequest part(Range range, int limit) {
      return new ClaimRequest(
          request.queue(),
          range,
          limit,
          Math.max(1, request.maxBytes() - bytes),
          request.lease(),
          request.owner(),
          Idle.UNCHANGED,
          request.timeLimit(),
          request.slots());
    }

    /** Says and learns what the request asked for, along with a claim of nothing. */
    private @Nullable LookAhead idle() {
      if (request.idle().mode() == Idle.Mode.UNCHANGED) {
        return null;
      }
      ClaimRequest nothing =
          new ClaimRequest(
              request.queue(),
              NOWHERE,
              1,
              1,
              request.lease(),
              request.owner(),
              request.idle(),
              request.timeLimit());
      try {
        return run(nothing).lookAhead();
      } catch (OutboxStoreException e) {
        if (rows.isEmpty()) {
          throw e;
        }
        log.debug("Rows were claimed by halves, but what comes next was not learned", e);
        return null; // what was leased must be told
      }
    }
  }
}
