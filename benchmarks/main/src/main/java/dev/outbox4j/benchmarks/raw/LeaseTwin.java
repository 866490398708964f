package dev.outbox4j.benchmarks.raw;

import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Sink;
import dev.outbox4j.benchmarks.spi.Verdict;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.OffsetDateTime;
import java.util.Arrays;
import java.util.function.Predicate;
import java.util.stream.IntStream;

/**
 * The statements of Outbox4j's claim and ack by hand, with nothing around them: no metrics, no
 * renewal, no LISTEN, no sweeps between. A test keeps their texts those of Outbox4j. Retry and
 * reject, which only failures need, are lighter than ours: they tell no sleepers and keep no
 * exception.
 */
public final class LeaseTwin extends OutboxRows {
  static final String CLAIM_ROWS =
      BY_INDEX
          + """
          with picked as materialized (
            select ctid, id
            from outbox
            where queue = ? and available_at <= now()
              and (available_at, id) > (?, ?)
              and (available_at, id) <= ('infinity', 9223372036854775807)
              and (lease_until is null or lease_until < now())
            order by available_at, id limit ? for update skip locked)
          update outbox o
          set id = coalesce(o.next_id, o.id), next_id = null,
            lease_until = now() + make_interval(secs => 60), leased_at = now(),
            lease_token = o.lease_token + 1, leased_by = ?,
            deliveries_count = o.deliveries_count + 1
          from picked
          where o.queue = ? and o.ctid = picked.ctid and (o.id = picked.id) is true
          returning o.id, o.lease_token, o.type, o.ordering_key, o.timer_id, o.payload, o.headers,
            o.created_at, o.available_at, o.deliveries_count, o.attempts_count, o.first_attempt_at,
            o.expires_at
          """;

  private static final String MATCH =
      """
       unnest(?::bigint[], ?::bigint[]) as a (id, token)
        where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token
          and o.lease_until is not null and o.next_id is null
      """;

  private static final String DONE =
      """
      returning o.id)
      select done.id, false from done
      where (
        select cast(min('outbox4j: more rows than asked, more than one with id ' || twin.id) as int)
        from (select done.id from done group by done.id having count(*) > 1) twin) is null
      """;

  static final String ACK = BY_INDEX + "with done as ( delete from outbox o using" + MATCH + DONE;

  static final String ACK_OF_ONE_TOKEN =
      BY_INDEX
          + """
          with done as (
            delete from outbox o using (select ?::bigint as token) a
            where (o.queue = ? or (o.queue < ? and ? = o.queue)) and o.id = any (?::bigint[])
              and o.lease_token = a.token and o.lease_until is not null and o.next_id is null
          """
          + DONE;

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

  private static final String LOCK_NOT_AVAILABLE = "55P03";
  private static final int MOST_TRIES = 100;
  private static final int PAYLOAD = 6;
  private static final int AVAILABLE_AT = 9;

  private String owner = "";
  private Bound bound = Bound.START;

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
    Bound[] last = {bound};
    try (PreparedStatement statement = connection.prepareStatement(CLAIM_ROWS)) {
      statement.setString(1, QUEUE);
      statement.setObject(2, bound.time());
      statement.setLong(3, bound.id());
      statement.setInt(4, CLAIM);
      statement.setString(5, owner);
      statement.setString(6, QUEUE);
      statement.execute();
      statement.getMoreResults();
      try (ResultSet rows = statement.getResultSet()) {
        Taken taken =
            Taken.read(
                rows,
                CLAIM,
                PAYLOAD,
                (row, id) ->
                    last[0] =
                        new Bound(row.getObject(AVAILABLE_AT, OffsetDateTime.class), id)
                            .max(last[0]));
        bound = taken.size() < CLAIM ? Bound.START : last[0];
        return taken;
      }
    }
  }

  @Override
  void handle(Connection connection, Taken taken, Sink sink) throws SQLException {
    Verdict[] verdicts = new Verdict[taken.size()];
    for (int i = 0; i < verdicts.length; i++) {
      verdicts[i] = sink.handle(taken.payloads()[i]);
    }
    write(connection, RETRY, only(taken, verdicts, Verdict.RETRY::equals));
    Taken rejected = only(taken, verdicts, Verdict.REJECT::equals);
    write(connection, REJECT, rejected);
    Taken done = only(taken, verdicts, Verdict.ACK::equals);
    boolean oneToken = Arrays.stream(done.tokens()).distinct().count() == 1;
    write(connection, oneToken ? ACK_OF_ONE_TOKEN : ACK, done);
    sink.acked(done.size() + rejected.size());
  }

  private static Taken only(Taken taken, Verdict[] verdicts, Predicate<Verdict> which) {
    return taken.only(
        IntStream.range(0, verdicts.length).filter(i -> which.test(verdicts[i])).toArray());
  }

  /** Another process's claim may lock the rows for longer than the lock timeout. */
  private static void write(Connection connection, String sql, Taken taken) throws SQLException {
    for (int tries = 1; taken.size() > 0; tries++) {
      try {
        writeOnce(connection, sql, taken);
        return;
      } catch (SQLException e) {
        if (!LOCK_NOT_AVAILABLE.equals(e.getSQLState()) || tries >= MOST_TRIES) {
          throw e;
        }
      }
    }
  }

  private static void writeOnce(Connection connection, String sql, Taken taken)
      throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(sql)) {
      if (sql.equals(ACK_OF_ONE_TOKEN)) {
        statement.setLong(1, taken.tokens()[0]);
        for (int i = 2; i <= 4; i++) {
          statement.setString(i, QUEUE);
        }
        statement.setObject(5, taken.ids());
      } else {
        statement.setObject(1, taken.ids());
        statement.setObject(2, taken.tokens());
        statement.setString(3, QUEUE);
      }
      statement.execute();
      statement.getMoreResults();
      int written = 0;
      try (ResultSet rows = statement.getResultSet()) {
        while (rows.next()) {
          written++;
        }
      }
      if (written != taken.size()) {
        throw new IllegalStateException(written + " rows written instead of " + taken.size());
      }
    }
  }
}
