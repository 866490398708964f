package dev.outbox4j.postgres.internal;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.Written;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A write on rows of one queue under their leases. Rows are locked in the order of their ids, so
 * that an ack and a renewal of the same rows cannot deadlock. Thread-safe.
 *
 * @param <T> what is to be written, one for each row
 */
public final class FencedStatement<T> {
  private static final Logger log = LoggerFactory.getLogger(FencedStatement.class);
  private static final String LOCK_NOT_AVAILABLE = "55P03";

  /** The parameter that is there if all rows have the same token. */
  private static final String ONE_TOKEN = "token";

  private final String operation;
  private final Jdbc jdbc;
  private final Texts ofRows;
  private final Texts ofBuckets;
  private final Texts handOver;
  private final Function<T, LeaseRef> lease;
  private final LockedRows lockedRows;

  /** Always passes locked rows by: for renewals, which are for many rows and must not be late. */
  private final boolean hurried;

  private record Texts(Sql waiting, Sql passingBy, @Nullable Sql waitingForOneToken) {
    static Texts of(FencedSql sql, OutboxTable table) {
      return new Texts(
          sql.waiting(table),
          sql.passingBy(table),
          sql.isUniform() ? sql.waitingForOneToken(table) : null);
    }
  }

  FencedStatement(
      String operation,
      Jdbc jdbc,
      FencedSql sql,
      Function<T, LeaseRef> lease,
      LockedRows lockedRows,
      boolean hurried) {
    this.operation = operation;
    this.jdbc = jdbc;
    this.ofRows = Texts.of(sql, jdbc.table());
    this.ofBuckets = Texts.of(sql.ofBuckets(), jdbc.table());
    this.handOver = Texts.of(new FencedSql(FencedSql.HAND_OVER), jdbc.table());
    this.lease = lease;
    this.lockedRows = lockedRows;
    this.hurried = hurried;
  }

  /**
   * Creates a write.
   *
   * @param operation what it is for, by its verb, for error texts
   * @param jdbc where to run it
   * @param sql its texts
   * @param lease reads the fence of what is to be written
   */
  public FencedStatement(String operation, Jdbc jdbc, FencedSql sql, Function<T, LeaseRef> lease) {
    this(operation, jdbc, sql, lease, new LockedRows(System::nanoTime), false);
  }

  /**
   * Writes.
   *
   * @param updates what to write, of one queue; of several for one row, the youngest lease counts,
   *     and of equal ones the first
   * @param values returns the values of the parameters, beside those that each write has
   * @return what was done
   */
  public Written execute(List<T> updates, Function<List<T>, Map<String, Object>> values) {
    if (updates.isEmpty()) {
      return Written.done(Set.of());
    }
    String queue = lease.apply(updates.get(0)).queue();
    if (updates.stream().anyMatch(update -> !lease.apply(update).queue().equals(queue))) {
      throw new IllegalArgumentException(
          operation + " is for rows of one queue, and these are of more than one");
    }
    List<T> sorted = youngestInOrder(updates);
    Map<String, Object> all = new HashMap<>(values.apply(sorted));
    all.put("queue", queue);
    long[] ids = sorted.stream().mapToLong(update -> lease.apply(update).id()).toArray();
    all.put("ids", ids);
    long[] tokens = sorted.stream().mapToLong(update -> lease.apply(update).token()).toArray();
    all.put("tokens", tokens);
    if (Arrays.stream(tokens).allMatch(token -> token == tokens[0])) {
      all.put(ONE_TOKEN, tokens[0]);
    }
    if (!BucketFence.isNeeded(lease.apply(updates.get(0)))) {
      return handedOver(queue, sorted, execute(ofRows, ids, all));
    }
    all.putAll(BucketFence.values(sorted.stream().map(lease).toList()));
    if (BucketFence.hasSeveralEpochs(all)) {
      all.remove(ONE_TOKEN);
    }
    return execute(ofBuckets, ids, all);
  }

  /**
   * Lets go of messages that others were published in the place of; what is not found is seldom
   * another owner's. If that fails, they are to be tried again.
   */
  private Written handedOver(String queue, List<T> updates, Written written) {
    List<LeaseRef> missing =
        updates.stream()
            .map(lease)
            .filter(ref -> !written.done().contains(ref.id()) && !written.busy().contains(ref.id()))
            .toList();
    if (hurried || missing.isEmpty()) { // a renewal is of the row, whatever it holds
      return written;
    }
    long[] ids = missing.stream().mapToLong(LeaseRef::id).toArray();
    Map<String, Object> values =
        Map.of(
            "queue",
            queue,
            "ids",
            ids,
            "tokens",
            missing.stream().mapToLong(LeaseRef::token).toArray(),
            "channel",
            jdbc.table().channel());
    Set<Long> busy = new HashSet<>(written.busy());
    try {
      Written gone = execute(handOver, ids, values);
      busy.addAll(gone.busy());
      return new Written(written.done(), busy, gone.done());
    } catch (OutboxStoreException e) {
      if (written.done().isEmpty()) {
        throw e;
      } // else what was written is not to be forgotten
      log.debug("{}: whether {} rows hold other messages is not known", operation, ids.length, e);
      missing.forEach(ref -> busy.add(ref.id()));
      return new Written(written.done(), busy);
    }
  }

  /** In the order of ids; they come in it, or nearly so. */
  private List<T> youngestInOrder(List<T> updates) {
    List<T> sorted = new ArrayList<>(updates);
    sorted.sort(Comparator.comparingLong(update -> lease.apply(update).id()));
    List<T> youngest = new ArrayList<>(sorted.size());
    for (T update : sorted) {
      int last = youngest.size() - 1;
      if (last < 0 || lease.apply(youngest.get(last)).id() != lease.apply(update).id()) {
        youngest.add(update);
      } else if (lease.apply(update).token() > lease.apply(youngest.get(last)).token()) {
        youngest.set(last, update);
      }
    }
    return youngest;
  }

  private Written execute(Texts texts, long[] ids, Map<String, Object> values) {
    if (!hurried && !lockedRows.areExpectedAmong(ids)) {
      try {
        return runWaiting(texts, values);
      } catch (OutboxStoreException e) {
        if (!isLocked(e)) {
          throw e;
        }
        lockedRows.waitedInVain();
      }
    }
    Written written = run(texts.passingBy(), values);
    if (!hurried) { // a renewal meets the acks of its own store, too
      lockedRows.passedBy(ids, written.busy());
    }
    return written;
  }

  private Written runWaiting(Texts texts, Map<String, Object> values) {
    Sql ofOneToken = texts.waitingForOneToken();
    if (ofOneToken != null && values.containsKey(ONE_TOKEN)) {
      Written written = run(ofOneToken, values);
      if (!written.done().isEmpty() || !texts.equals(ofBuckets)) {
        return written;
      } // one of the buckets may be lost, and the rows of the others still be held
    }
    return run(texts.waiting(), values);
  }

  private Written run(Sql sql, Map<String, Object> values) {
    return jdbc.run(operation, connection -> run(connection, sql, values));
  }

  private Written run(Connection connection, Sql sql, Map<String, Object> values)
      throws SQLException {
    return jdbc.preamble()
        .run(connection, sql, values, null, (start, results) -> read(results.next()));
  }

  private static Written read(Results results) throws SQLException {
    Set<Long> done = new HashSet<>();
    Set<Long> busy = new HashSet<>();
    try (ResultSet rows = results.rows()) {
      while (rows.next()) {
        (rows.getBoolean(2) ? busy : done).add(rows.getLong(1));
      }
    }
    return new Written(done, busy);
  }

  /** Tells whether a lock was waited for in vain. */
  static boolean isLocked(OutboxStoreException e) {
    return Objects.requireNonNullElse(e.getCause(), e) instanceof SQLException cause
        && LOCK_NOT_AVAILABLE.equals(SqlFaults.state(cause));
  }
}
