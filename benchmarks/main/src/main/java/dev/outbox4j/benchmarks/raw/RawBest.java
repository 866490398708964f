package dev.outbox4j.benchmarks.raw;

import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Sink;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.OffsetDateTime;

/**
 * The fastest that is known by hand with the same guarantee on the same table: leases with a fence,
 * in claims of as many rows as the option {@code claim} says, that write and return no more than
 * they must, while others are acked; what holds the plans is set once for each connection. It knows
 * no retries, no owners, no counters, and nobody's mistakes.
 */
public final class RawBest extends OutboxRows {
  private static final String CLAIM_ROWS =
      """
      with picked as materialized (
        select ctid from outbox
        where queue = ? and available_at <= now() and (available_at, id) > (?, ?)
          and (lease_until is null or lease_until < now())
        order by available_at, id limit ? for update skip locked)
      update outbox o set lease_until = now() + interval '60 s', lease_token = o.lease_token + 1
      from picked where o.ctid = picked.ctid
      returning o.id, o.lease_token, o.payload, o.available_at""";
  private static final String ACK =
      """
      delete from outbox o using unnest(?::bigint[], ?::bigint[]) as a (id, token)
      where o.id = any (array[a.id]) and o.lease_token = a.token""";

  private int claim;
  private Bound bound = Bound.START;

  /** Made by the service loader. */
  public RawBest() {}

  @Override
  public String name() {
    return "raw-best";
  }

  @Override
  public String contract() {
    return "at least once: lease, fence, delete on ack; no retries, no library";
  }

  @Override
  public void start(Bench bench, Sink sink) {
    claim = bench.number("claim");
    super.start(bench, sink);
  }

  @Override
  void open(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      for (String method :
          new String[] {"seqscan", "bitmapscan", "sort", "hashjoin", "mergejoin"}) {
        statement.execute("set enable_" + method + " = off");
      }
      statement.execute("set jit = off");
    }
  }

  @Override
  Taken claim(Connection connection) throws SQLException {
    Bound from = bound();
    Bound[] last = {from};
    try (PreparedStatement statement = connection.prepareStatement(CLAIM_ROWS)) {
      statement.setString(1, QUEUE);
      statement.setObject(2, from.time());
      statement.setLong(3, from.id());
      statement.setInt(4, claim);
      try (ResultSet rows = statement.executeQuery()) {
        Taken taken =
            Taken.read(
                rows,
                claim,
                3,
                (row, id) -> {
                  // rows come in their order, and a bound that is too low costs time only
                  if (row.isLast()) {
                    last[0] = new Bound(row.getObject(4, OffsetDateTime.class), id);
                  }
                });
        claimed(taken, last[0]);
        return taken;
      }
    }
  }

  private synchronized Bound bound() {
    return bound;
  }

  /** Two may claim at once; rows that were committed late are found from the start. */
  private synchronized void claimed(Taken taken, Bound last) {
    bound = taken.size() < claim ? Bound.START : last.max(bound);
  }

  @Override
  void handle(Connection connection, Taken taken, Sink sink) throws SQLException {
    for (byte[] payload : taken.payloads()) {
      sink.handle(payload);
    }
    try (PreparedStatement statement = connection.prepareStatement(ACK)) {
      statement.setObject(1, taken.ids());
      statement.setObject(2, taken.tokens());
      int deleted = statement.executeUpdate();
      if (deleted != taken.size()) {
        throw new IllegalStateException(deleted + " rows deleted instead of " + taken.size());
      }
    }
    sink.acked(taken.size());
  }
}
