package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.postgresql.ds.PGSimpleDataSource;

/** The settings of pgjdbc that change how statements and parameters are sent. */
@ExtendWith(PostgresExtension.class)
class PublishDriverSettingsIT {
  /** More than the driver runs before it prepares on the server, by default. */
  private static final int RUNS = 8;

  private static final int MODES = NotifyMode.values().length;
  private static final String TYPE = "a \\'b";
  private static final String HEADER = "{\"a\", 'b'}";
  private static final String BODY = "\\x00 'é";

  private final TestDatabase database;

  PublishDriverSettingsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void empty() {
    database.update("truncate outbox, outbox_sleepers");
    database.update(
        "insert into outbox_sleepers values ('q', 's', clock_timestamp() + interval '1 hour', false, now())");
  }

  @ParameterizedTest
  @CsvSource({
    "stringtype,unspecified",
    "preferQueryMode,simple",
    "preferQueryMode,extendedForPrepared",
    "preferQueryMode,extendedCacheEverything",
    "prepareThreshold,0",
    "prepareThreshold,1",
    "prepareThreshold,-1",
    "autosave,always",
    "binaryTransfer,false",
    "defaultRowFetchSize,1",
    "quoteReturningIdentifiers,false"
  })
  void changeNothingOfWhatIsPublished(String setting, String value) throws SQLException {
    PGSimpleDataSource source = database.plain();
    source.setProperty(setting, value);
    try (Connection connection = source.getConnection()) {
      connection.setAutoCommit(false);
      for (NotifyMode mode : NotifyMode.values()) {
        OutboxPublisher publisher = PostgresOutbox.publisher(database.table()).notify(mode).build();
        for (int run = 0; run < RUNS; run++) {
          publisher.publish(connection, plain());
          publisher.publish(connection, List.of(plain(), bare()));
          publisher.publish(connection, List.of(plain(), timer("t" + run), bare()));
          assertThat(publisher.publish(connection, timer("t" + run)).deduplicated()).isTrue();
          assertThat(publisher.cancelTimer(connection, "q", "t" + run)).isTrue();
        }
        connection.commit();
      }
    }
    assertThat(
            database.one(
                Long.class,
                """
                select count(*) from outbox
                where queue = 'q' and type = ? and ordering_key = 'k' and timer_id is null
                  and convert_from(payload, 'UTF8') = ? and headers ->> 'h' = ?
                  and available_at = timestamptz '2030-01-01 00:00:00+00'
                """,
                TYPE,
                BODY,
                HEADER))
        .isEqualTo(3L * MODES * RUNS);
    assertThat(
            database.one(
                Long.class,
                """
                select count(*) from outbox
                where type is null and headers = '{}' and timer_id is null
                  and available_at > created_at + interval '59 seconds'
                """))
        .isEqualTo(2L * MODES * RUNS);
    assertThat(database.count("outbox")).isEqualTo(5L * MODES * RUNS);
  }

  private static OutboxMessage plain() {
    return OutboxMessage.to("q")
        .type(TYPE)
        .orderingKey("k")
        .header("h", HEADER)
        .body(BODY.getBytes(StandardCharsets.UTF_8))
        .deliverAt(Instant.parse("2030-01-01T00:00:00Z"))
        .build();
  }

  private static OutboxMessage bare() {
    return OutboxMessage.to("q").deliverIn(Duration.ofMinutes(1)).build();
  }

  private static OutboxMessage timer(String id) {
    return OutboxMessage.to("q").timerId(id).build();
  }
}
