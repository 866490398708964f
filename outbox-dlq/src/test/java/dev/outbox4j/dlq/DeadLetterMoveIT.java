package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.FailureReason;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.DeadLetterWriter;
import dev.outbox4j.spi.LeaseRef;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresExtension.class)
class DeadLetterMoveIT {
  private final TestDatabase database;
  private final Rows rows;
  private HikariDataSource pool;
  private DeadLetterWriter writer;

  DeadLetterMoveIT(TestDatabase database) {
    this.database = database;
    this.rows = new Rows(database, "outbox");
  }

  @BeforeEach
  void begin() {
    database.update("truncate outbox, outbox_dlq");
    pool = database.pool(1);
    writer =
        DeadLetterQueue.in("outbox_dlq").bind(PostgresOutbox.on(pool, database.table()).store());
  }

  @AfterEach
  void nothingIsBorrowed() {
    assertThat(pool.getHikariPoolMXBean().getActiveConnections()).isZero();
    pool.close();
  }

  @Test
  void movesARowWithAllItsColumns() {
    database.update(
        """
        insert into outbox (id, queue, type, ordering_key, payload, headers, created_at,
            available_at, lease_until, leased_at, lease_token, leased_by, deliveries_count, attempts_count,
            first_attempt_at, last_attempt_at, last_error, timer_id)
        values (901, 'orders', 'order.placed', 'acme', '\\x00ff10', '{"a": "1", "b": "ü"}',
            '2026-01-02 03:04:05.678901Z', '2026-01-03Z', now() + interval '1 hour', now(), 4, 's', 6, 2,
            '2026-01-03Z', '2026-01-04Z', 'old error', 'timer-1')
        """);
    String exception = "java.lang.Error: \"quoted\", {braces}, back\\slash, 漢字 💥\n\tat x";

    assertThat(
            writer
                .write(
                    List.of(
                        new DeadLetterEntry(
                            new LeaseRef("orders", 901, 4), FailureReason.REJECTED, 3, exception)))
                .done())
        .containsExactly(901L);

    assertThat(database.count("outbox")).isZero();
    assertThat(
            database.one(
                Boolean.class,
                """
                select (original_id, queue, type, ordering_key, payload, headers) = (901::bigint,
                    'orders', 'order.placed', 'acme', '\\x00ff10'::bytea,
                    '{"a": "1", "b": "ü"}'::jsonb)
                  and (deliveries_count, attempts_count, created_at, timer_id) =
                    (6, 3, '2026-01-02 03:04:05.678901Z'::timestamptz, 'timer-1')
                  and failed_at between now() - interval '1 minute' and now()
                  and (outbox, lease_token, available_at, first_attempt_at) =
                    ('public.outbox', 4, '2026-01-03Z'::timestamptz, '2026-01-03Z'::timestamptz)
                  and last_attempt_at between now() - interval '1 minute' and now()
                  and (resolved_at, resolved_by, resolution) is null
                from outbox_dlq
                """))
        .isTrue();
    assertThat(database.one(String.class, "select failure_reason from outbox_dlq"))
        .isEqualTo("rejected");
    assertThat(database.one(String.class, "select last_exception from outbox_dlq"))
        .isEqualTo(exception);
  }

  @Test
  void keepsNullsWhereTheRowHasNone() {
    long id = rows.lease("orders");

    writer.write(
        List.of(
            new DeadLetterEntry(
                new LeaseRef("orders", id, Rows.TOKEN), FailureReason.MAX_DELIVERIES, 0, null)));

    assertThat(
            database.one(
                Boolean.class,
                "select (type, ordering_key, timer_id, last_exception) is null and attempts_count = 0"
                    + " and failure_reason = 'max_deliveries' from outbox_dlq"))
        .isTrue();
  }

  @Test
  void movesNothingForAnotherOwnersToken() {
    long id = rows.lease("orders");

    assertThat(writer.write(List.of(Rows.entry("orders", id, Rows.TOKEN - 1))).done()).isEmpty();
    assertThat(writer.write(List.of(Rows.entry("orders", id, Rows.TOKEN + 1))).done()).isEmpty();

    assertThat(rows.untouched(id)).isTrue();
    assertThat(database.count("outbox_dlq")).isZero();
  }

  @Test
  void movesNothingUnderALeaseThatWasGivenUp() {
    long id = rows.lease("orders");
    database.update("update outbox set lease_until = null, leased_by = null where id = ?", id);

    assertThat(writer.write(List.of(Rows.entry("orders", id))).done()).isEmpty();

    assertThat(rows.gone(id)).isFalse();
    assertThat(database.count("outbox_dlq")).isZero();
  }

  @Test
  void movesUnderALeaseThatRanOutUnclaimed() {
    long id = rows.lease("orders");
    database.update("update outbox set lease_until = now() - interval '1 s' where id = ?", id);

    assertThat(writer.write(List.of(Rows.entry("orders", id))).done()).containsExactly(id);
  }

  @Test
  void movesNothingForAnotherQueue() {
    long id = rows.lease("orders");
    long other = rows.lease("invoices");

    assertThat(writer.write(List.of(Rows.entry("invoices", id))).done()).isEmpty();
    assertThat(writer.write(List.of(Rows.entry("orders", other))).done()).isEmpty();

    assertThat(rows.untouched(id)).isTrue();
    assertThat(rows.untouched(other)).isTrue();
    assertThat(database.count("outbox_dlq")).isZero();
  }

  @Test
  void movesThoseItOwnsAndLeavesTheOthers() {
    List<Long> orders = rows.lease("orders", 4);
    long invoice = rows.lease("invoices");
    List<DeadLetterEntry> entries = new ArrayList<>();
    entries.add(Rows.entry("orders", orders.get(0)));
    entries.add(Rows.entry("orders", orders.get(1), Rows.TOKEN + 1));
    entries.add(Rows.entry("orders", invoice));
    entries.add(Rows.entry("orders", 999_999));

    assertThat(writer.write(entries).done()).containsExactly(orders.get(0));

    assertThat(database.list(Long.class, "select original_id from outbox_dlq"))
        .containsExactly(orders.get(0));
    assertThat(List.of(orders.get(1), orders.get(2), orders.get(3), invoice))
        .allMatch(rows::untouched);
  }

  @Test
  void movesAThousandRowsAtOnceEachWithItsOwnReason() {
    List<Long> ids =
        database.list(
            Long.class,
            "insert into outbox (queue, payload, lease_token, lease_until)"
                + " select 'orders', '', n, now() + interval '1 hour' from generate_series(1, 1000) n"
                + " returning id");
    List<FailureReason> reasons = List.of(FailureReason.values());
    List<DeadLetterEntry> entries = new ArrayList<>();
    for (int i = 0; i < ids.size(); i++) {
      FailureReason reason = reasons.get(i % reasons.size());
      entries.add(
          new DeadLetterEntry(new LeaseRef("orders", ids.get(i), i + 1), reason, i, "e" + i));
    }

    assertThat(writer.write(entries).done()).containsExactlyInAnyOrderElementsOf(ids);

    assertThat(database.count("outbox")).isZero();
    long first = ids.get(0);
    assertThat(
            database.list(
                Boolean.class,
                "select attempts_count = original_id - ? and last_exception = 'e' || attempts_count"
                    + " from outbox_dlq",
                first))
        .hasSize(1000)
        .containsOnly(true);
    assertThat(database.one(Long.class, "select count(distinct failure_reason) from outbox_dlq"))
        .isEqualTo(reasons.size());
  }

  @Test
  void takesTheSameRowTwiceInOneCallAsOne() {
    long id = rows.lease("orders");

    assertThat(writer.write(List.of(Rows.entry("orders", id), Rows.entry("orders", id))).done())
        .containsExactly(id);

    assertThat(database.count("outbox_dlq")).isEqualTo(1);
  }

  @Test
  void movesARowOnce() {
    long id = rows.lease("orders");

    assertThat(writer.write(List.of(Rows.entry("orders", id))).done()).containsExactly(id);
    assertThat(writer.write(List.of(Rows.entry("orders", id))).done()).isEmpty();

    assertThat(database.count("outbox_dlq")).isEqualTo(1);
  }

  @Test
  void takesAnyQueueNameAsAValue() {
    String queue = "o'rders\"; drop table outbox; -- {0} ? :x \\ ,}{ null";
    long id = rows.lease(queue);
    long nullNamed = rows.lease("null");

    assertThat(writer.write(List.of(Rows.entry(queue, id))).done()).containsExactly(id);
    assertThat(writer.write(List.of(Rows.entry("null", nullNamed))).done())
        .containsExactly(nullNamed);

    assertThat(database.list(String.class, "select queue from outbox_dlq"))
        .containsExactlyInAnyOrder(queue, "null");
  }

  @Test
  void refusesAnEmptyList() {
    assertThatThrownBy(() -> writer.write(List.of()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("one or more");
  }

  @Test
  void movesToASchemaThatIsNotOnTheSearchPath() {
    database.update("create schema if not exists archive");
    database.update("create table archive.letters (like outbox_dlq including all)");
    long id = rows.lease("orders");

    assertThat(
            DeadLetterQueue.in("archive", "letters")
                .bind(PostgresOutbox.on(pool, database.table()).store())
                .write(List.of(Rows.entry("orders", id)))
                .done())
        .containsExactly(id);

    assertThat(database.count("archive.letters")).isEqualTo(1);
    assertThat(database.count("outbox_dlq")).isZero();
  }

  @Test
  void looksBesideAnOutboxWhoseSchemaWasNamed() {
    database.update("create schema \"Sales Dept\"");
    OutboxMigrations.of("Sales Dept", "Out-Box 1").migrate(database.plain());
    Rows odd = new Rows(database, "\"Sales Dept\".\"Out-Box 1\"");
    long id = odd.lease("orders");
    OutboxTable table = OutboxTable.named("Out-Box 1").inSchema("Sales Dept");

    assertThat(
            DeadLetterQueue.in("Out-Box 1_dlq")
                .bind(PostgresOutbox.on(pool, table).store())
                .write(List.of(Rows.entry("orders", id)))
                .done())
        .containsExactly(id);

    assertThat(odd.gone(id)).isTrue();
    assertThat(database.count("\"Sales Dept\".\"Out-Box 1_dlq\"")).isEqualTo(1);
  }

  @Test
  void tellsTheOutboxesApartThatShareATable() {
    OutboxMigrations.of("shop", "orders").deadLetters("shop", "letters").migrate(database.plain());
    OutboxMigrations.of("mail", "Out Box").deadLetters("shop", "letters").migrate(database.plain());
    Rows orders = new Rows(database, "shop.orders");
    Rows mails = new Rows(database, "mail.\"Out Box\"");
    long order = orders.lease("q");
    long mail = mails.lease("q");
    assertThat(order).as("the same id in both").isEqualTo(mail);
    DeadLetterQueue letters = DeadLetterQueue.in("shop", "letters");

    letters
        .bind(PostgresOutbox.on(pool, OutboxTable.named("orders").inSchema("shop")).store())
        .write(List.of(Rows.entry("q", order)));
    letters
        .bind(PostgresOutbox.on(pool, OutboxTable.named("Out Box").inSchema("mail")).store())
        .write(List.of(Rows.entry("q", mail)));

    assertThat(database.list(String.class, "select outbox from shop.letters order by outbox"))
        .containsExactly("mail.Out Box", "shop.orders");
    assertThat(database.one(Long.class, "select count(distinct original_id) from shop.letters"))
        .isEqualTo(1);
  }

  @Test
  void keepsTheAttemptsTimesWhereNoHandlerRan() {
    long id = rows.lease("orders");
    database.update(
        "update outbox set attempts_count = 2, first_attempt_at = '2026-01-03Z',"
            + " last_attempt_at = '2026-01-04Z' where id = ?",
        id);

    writer.write(
        List.of(
            new DeadLetterEntry(
                new LeaseRef("orders", id, Rows.TOKEN), FailureReason.MAX_DELIVERIES, 2, null)));

    assertThat(
            database.one(
                Boolean.class,
                "select first_attempt_at = '2026-01-03Z' and last_attempt_at = '2026-01-04Z'"
                    + " from outbox_dlq"))
        .isTrue();
  }
}
