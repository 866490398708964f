package dev.outbox4j.benchmarks.raw;

import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Sink;
import dev.outbox4j.benchmarks.spi.Verdict;
import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;

/**
 * The statements of Outbox4j's claim and ack by hand, with nothing around them: no metrics, no
 * renewal, no LISTEN, no sweeps between, no check of what the ack deleted.
 */
public final class LeaseTwin extends OutboxRows {
  private static final OffsetDateTime START =
      OffsetDateTime.of(1970, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC);
  private static final String CLAIM_ROWS =
      BY_INDEX
          + """
          with picked as materialized (
            select ctid, id from outbox
            where queue = ? and available_at <= now() and (available_at, id) > (?, ?)
              and (available_at, id) <= ('infinity', 9223372036854775807)
              and (lease_until is null or lease_until < now())
            order by available_at, id limit ? for update skip locked)
          update outbox o set lease_until = now() + make_interval(secs => 60), leased_at = now(), lease_token = o.lease_token + 1,
            leased_by = ?, deliveries_count = o.deliveries_count + 1
          from picked where o.queue = ? and o.ctid = picked.ctid and (o.id = picked.id) is true
          returning o.id, o.lease_token, o.payload, o.available_at, o.type, o.ordering_key, o.timer_id,
            o.headers, o.created_at, o.deliveries_count, o.attempts_count, o.first_attempt_at""";
  private static final String MATCH =
      " unnest(?::bigint[], ?::bigint[]) as d(id, token)"
          + " where o.queue = ? and o.id = any (array[d.id]) and o.lease_token = d.token"
          + " and o.lease_until is not null";
  private static final String ACK =
      BY_INDEX + "delete from outbox o using" + MATCH + " returning o.id";
  private static final String RETRY =
      BY_INDEX
          + "update outbox o set available_at = now() + make_interval(secs => 0.001), lease_until = null,"
          + " leased_at = null, leased_by = null, attempts_count = o.attempts_count + 1,"
          + " first_attempt_at = coalesce(o.first_attempt_at, now()), last_attempt_at = now(),"
          + " last_error = 'failed' from"
          + MATCH
          + " returning o.id";
  private static final String REJECT =
      BY_INDEX
          + "with deleted as (delete from outbox o using"
          + MATCH
          + " returning o.*) insert into outbox_dlq (outbox, original_id, lease_token, queue, payload,"
          + " headers, deliveries_count, attempts_count, created_at, available_at, failure_reason)"
          + " select 'public.outbox', id, lease_token, queue, payload, headers, deliveries_count,"
          + " attempts_count, created_at, available_at, 'rejected' from deleted returning 1";

  private String owner = "";
  private OffsetDateTime boundTime = START;
  private long boundId;

  /** Made by the service loader. */
  public LeaseTwin() {}

  @Override
  public String name() {
    return "raw-lease-twin";
  }

  @Override
  public String contract() {
    return "at least once: lease, fence, delete on ack; no library";
  }

  @Override
  public void start(Bench bench, Sink sink) {
    // as long as Outbox4j's: what is written into each row is part of the figure
    owner = bench.option("owner", "bench@twin-12345");
    super.start(bench, sink);
  }

  @Override
  Taken claim(Connection connection) throws SQLException {
    List<Long> ids = new ArrayList<>(CLAIM);
    List<Long> tokens = new ArrayList<>(CLAIM);
    List<byte[]> payloads = new ArrayList<>(CLAIM);
    OffsetDateTime lastTime = boundTime;
    long lastId = boundId;
    try (PreparedStatement statement = connection.prepareStatement(CLAIM_ROWS)) {
      statement.setString(1, QUEUE);
      statement.setObject(2, boundTime);
      statement.setLong(3, boundId);
      statement.setInt(4, CLAIM);
      statement.setString(5, owner);
      statement.setString(6, QUEUE);
      statement.execute();
      statement.getMoreResults();
      try (ResultSet rows = statement.getResultSet()) {
        while (rows.next()) {
          ids.add(rows.getLong(1));
          tokens.add(rows.getLong(2));
          payloads.add(rows.getBytes(3));
          OffsetDateTime time = rows.getObject(4, OffsetDateTime.class);
          int order = time.compareTo(lastTime);
          if (order > 0 || (order == 0 && ids.get(ids.size() - 1) > lastId)) {
            lastTime = time;
            lastId = ids.get(ids.size() - 1);
          }
        }
      }
    }
    boolean sweepNext = ids.size() < CLAIM;
    boundTime = sweepNext ? START : lastTime;
    boundId = sweepNext ? 0 : lastId;
    return new Taken(
        ids.toArray(new Long[0]), tokens.toArray(new Long[0]), payloads.toArray(new byte[0][]));
  }

  @Override
  void handle(Connection connection, Taken taken, Sink sink) throws SQLException {
    List<Integer> retried = new ArrayList<>();
    List<Integer> rejected = new ArrayList<>();
    List<Integer> done = new ArrayList<>(taken.ids().length);
    for (int i = 0; i < taken.ids().length; i++) {
      Verdict verdict = sink.handle(taken.payloads()[i]);
      (verdict == Verdict.ACK ? done : verdict == Verdict.RETRY ? retried : rejected).add(i);
    }
    write(connection, RETRY, taken, retried);
    write(connection, REJECT, taken, rejected);
    write(connection, ACK, taken, done);
    sink.acked(done.size() + rejected.size());
  }

  private static void write(Connection connection, String sql, Taken taken, List<Integer> which)
      throws SQLException {
    if (which.isEmpty()) {
      return;
    }
    Array ids =
        connection.createArrayOf("bigint", which.stream().map(i -> taken.ids()[i]).toArray());
    Array tokens =
        connection.createArrayOf("bigint", which.stream().map(i -> taken.tokens()[i]).toArray());
    try (PreparedStatement statement = connection.prepareStatement(sql)) {
      statement.setArray(1, ids);
      statement.setArray(2, tokens);
      statement.setString(3, QUEUE);
      statement.execute();
      statement.getMoreResults();
      int written = 0;
      try (ResultSet rows = statement.getResultSet()) {
        while (rows.next()) {
          written++;
        }
      }
      if (written != which.size()) {
        throw new IllegalStateException(written + " rows written instead of " + which.size());
      }
    }
  }
}
