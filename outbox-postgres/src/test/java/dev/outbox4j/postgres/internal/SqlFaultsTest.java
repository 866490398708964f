package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.postgres.OutboxTable;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.sql.BatchUpdateException;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.util.PSQLException;
import org.postgresql.util.PSQLState;
import org.postgresql.util.ServerErrorMessage;

class SqlFaultsTest {
  private static final OutboxTable TABLE = OutboxTable.named("outbox");

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "42P01|relation \"outbox_slots\" does not exist|SlotMigrations (with Spring Boot: outbox4j.queues.<queue>.concurrency-limit)",
        "42P01|Relation »public.outbox_pauses« existiert nicht|PauseMigrations (with Spring Boot: outbox4j.pausable=true)",
        "42P01|relation \"outbox_bucket_owners\" does not exist|OrderedMigrations (with Spring Boot: outbox4j.ordered-queues)",
        "42883|function outbox_dedup_take(text[], bigint[]) does not exist|DedupMigrations (with Spring Boot: outbox4j.dedup-keys=true)",
        "42P01|relation \"outbox\" does not exist|OutboxMigrations (with Spring Boot: outbox4j.migrate=true)",
        "42P01|relation \"my_outbox_slots\" does not exist|OutboxMigrations",
        "42501|permission denied for table outbox_dedup|DedupMigrations.grantsSql",
        "42501|permission denied for sequence outbox_id_seq|DedupMigrations.grantsSql",
        "42501|permission denied for table outbox|OutboxMigrations.grantsSql",
      })
  void whatIsMissingNamesItsMigrations(String state, String words, String migrations) {
    OutboxStoreException e =
        explain(new PSQLException(new ServerErrorMessage(fields(state, words, null))));

    assertThat(e).hasMessageContaining(" " + migrations);
  }

  @ParameterizedTest
  @CsvSource({
    "42P01, SETUP, false",
    "42703, SETUP, false",
    "3F000, SETUP, false",
    "42501, SETUP, false",
    "42804, SETUP, false",
    "22021, ROW, false",
    "22003, ROW, false",
    "23505, ROW, false",
    "44000, ROW, false",
    "P0001, ROW, false",
    "40001, TRANSIENT, false",
    "40P01, TRANSIENT, false",
    "25006, TRANSIENT, false",
    "53300, TRANSIENT, false",
    "26000, TRANSIENT, false",
    "42P05, SETUP, false",
    "55P03, TIMEOUT, false",
    "57014, TIMEOUT, false",
    "57P05, CONNECTION, true",
    "25P03, CONNECTION, true",
    "25P04, CONNECTION, true",
    "57P01, CONNECTION, true",
    "57P02, CONNECTION, true",
    "57P03, CONNECTION, true",
    "08006, CONNECTION, true",
    "08P01, CONNECTION, true",
    "XX000, TRANSIENT, false",
    ", CONNECTION, true"
  })
  void everyStateHasItsFault(String state, Fault fault, boolean unknown) {
    OutboxStoreException e = explain(new SQLException("words", state));

    assertThat(e.fault()).isEqualTo(fault);
    assertThat(e.outcomeUnknown()).isEqualTo(unknown);
    assertThat(e).hasMessageContaining("ack on outbox failed: ");
    assertThat(e).hasMessageContaining(state == null ? "no SQLSTATE" : state);
  }

  @Test
  void theStateIsFoundAlongCausesAndNextExceptions() {
    SQLException next = new SQLException("next", "23505");
    SQLException batch = new SQLException("batch");
    batch.setNextException(next);

    assertThat(explain(new SQLException("outer", new RuntimeException(batch))).fault())
        .isEqualTo(Fault.ROW);
  }

  @Test
  void aChainThatBitesItsTailEnds() {
    SQLException one = new SQLException("one");
    SQLException two = new SQLException("two", one);
    one.setNextException(two);

    assertThat(explain(two).fault()).isEqualTo(Fault.CONNECTION);
  }

  @ParameterizedTest
  @ValueSource(strings = {"26000", "42P05"})
  void aPreparedStatementThatIsNotThereIsToldAsAPoolers(String state) {
    assertThat(explain(new SQLException("words", state)))
        .hasMessageContaining("pooler")
        .hasMessageContaining("prepareThreshold=0");
  }

  @Test
  void aServerThatIsReadOnlyIsToldAsSuch() {
    assertThat(explain(new SQLException("words", "25006")))
        .hasMessageContaining("this server is read-only");
  }

  @Test
  void whatTheCallerCanMendIsToldAsSuch() {
    OutboxStoreException failed = explain(new SQLException("words", "25P02"));
    assertThat(failed).hasMessageContaining("has failed before, by another statement");
    assertThat(failed.sqlState()).contains("25P02");
    assertThat(failed.isTransient()).isTrue();
    assertThat(explain(new SQLException("words", "23505")).isTransient()).isFalse();
    assertThat(explain(new SQLException("words", "08003")))
        .hasMessageContaining("the connection is closed");
    for (String state : List.of("28P01", "28000", "3D000")) {
      assertThat(SqlFaults.notSent("claim", TABLE, new SQLException("words", state)))
          .hasMessageContaining("check user, password and database name");
    }
    assertThat(SqlFaults.notSent("claim", TABLE, new SQLException("words", "08001")))
        .hasMessageContaining("check that the server runs");
  }

  @Test
  void aTimeoutMayHaveTakenEffectWhateverItsState() {
    assertThat(explain(new SQLTimeoutException("late", "57014")).outcomeUnknown()).isTrue();
  }

  /** The server says so of itself with the same state, and then nothing was done. */
  @Test
  void anAnswerThatTheDriverCouldNotHoldMayHaveTakenEffect() {
    PSQLException driver =
        new PSQLException(
            "Ran out of memory retrieving query results.",
            PSQLState.OUT_OF_MEMORY,
            new OutOfMemoryError("Java heap space"));
    assertThat(explain(driver).outcomeUnknown()).isTrue();
    assertThat(explain(new SQLException("out of memory", "53200")).outcomeUnknown()).isFalse();
  }

  @Test
  void nothingWasSentWithoutAConnection() {
    OutboxStoreException e =
        SqlFaults.notSent("claim", TABLE, new SQLException("refused", "08001"));

    assertThat(e.outcomeUnknown()).isFalse();
    assertThat(e.fault()).isEqualTo(Fault.CONNECTION);
    assertThat(e).hasMessageContaining("refused");
  }

  @Test
  void theServersDetailIsLeftOutOfTheMessageAndTheCause() {
    PSQLException server =
        new PSQLException(
            new ServerErrorMessage(
                fields(
                    "23505", "duplicate key value violates \"uq\"", "Key (k)=(SECRET) exists.")));
    assertThat(server.getMessage()).contains("SECRET");

    OutboxStoreException e = explain(server);

    assertThat(e).hasMessageContaining("duplicate key value violates \"uq\"");
    assertThat(printed(e)).doesNotContain("SECRET");
    assertThat(e.getCause()).isInstanceOf(SQLException.class);
    assertThat(((SQLException) e.getCause()).getSQLState()).isEqualTo("23505");
    assertThat(e.getCause().getStackTrace()).isEqualTo(server.getStackTrace());
  }

  @Test
  void aValueThatTheServerQuotesIsLeftOut() {
    PSQLException server =
        new PSQLException(
            new ServerErrorMessage(
                fields("22P02", "invalid input syntax for type json: \"SECRET\"", null)));

    OutboxStoreException e = explain(server);

    assertThat(printed(e)).doesNotContain("SECRET").contains("invalid input syntax for type json");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "invalid input syntax for type json: \"a\"SECRET\"b\"",
        "invalid input syntax for type json: \"a\nSECRET\"",
        "ungültige Eingabesyntax für Typ json: »SECRET«",
        "syntaxe en entrée invalide pour le type json : « SECRET »"
      })
  void aQuotedValueIsLeftOutWhateverItHoldsAndInWhateverLanguage(String words) {
    PSQLException server = new PSQLException(new ServerErrorMessage(fields("22P02", words, null)));

    assertThat(printed(explain(server))).doesNotContain("SECRET").contains("json");
    assertThat(printed(explain(new SQLException(words, "22P02")))).doesNotContain("SECRET");
  }

  @Test
  void whatWasSuppressedTellsNoMore() {
    SQLException e = new SQLException("lost", "08006");
    e.addSuppressed(new SQLException("closing jdbc:postgresql://db/app?password=SECRET"));

    assertThat(printed(explain(e))).doesNotContain("SECRET").contains("lost");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "No driver for jdbc:postgresql://db/app?password=my SECRET",
        "r2dbcs:postgresql://me:SECRET@db/app is bad",
        "nobody is called me:SECRET@db",
        "bad properties: user=me, password=SECRET",
        "PASSWORD: SECRET"
      })
  void anAddressOrAPasswordIsNotRepeated(String words) {
    assertThat(printed(explain(new SQLException(words, "08001")))).doesNotContain("SECRET");
    assertThat(
            printed(Redaction.redact(new RuntimeException("x", new IllegalStateException(words)))))
        .doesNotContain("SECRET");
  }

  @Test
  void aFailureWithoutValuesKeepsItsOwnCause() {
    PSQLException server =
        new PSQLException(
            new ServerErrorMessage(fields("42P01", "relation \"outbox\" does not exist", null)));

    assertThat(explain(server).getCause()).isSameAs(server);
  }

  @Test
  void urlsAndBatchesAreNotRepeated() {
    String url = "jdbc:postgresql://db/app?user=me&password=SECRET";

    assertThat(printed(explain(new SQLException("No driver for " + url, "08001"))))
        .doesNotContain("SECRET");
    assertThat(
            printed(
                SqlFaults.notSent(
                    "claim", TABLE, new SQLException(new IllegalStateException("bad " + url)))))
        .doesNotContain("SECRET");
    assertThat(
            printed(
                explain(
                    new BatchUpdateException(
                        "Batch entry 0 insert into t values ('SECRET')", "23505", new int[0]))))
        .doesNotContain("SECRET");
  }

  private static OutboxStoreException explain(SQLException e) {
    return SqlFaults.explain("ack", TABLE, e);
  }

  /** An error as the server sends it. */
  private static String fields(String state, String message, String detail) {
    return "SERROR\0C"
        + state
        + "\0M"
        + message
        + "\0"
        + (detail == null ? "" : "D" + detail + "\0");
  }

  private static String printed(Throwable e) {
    StringWriter text = new StringWriter();
    e.printStackTrace(new PrintWriter(text));
    return text.toString();
  }
}
