package dev.outbox4j.monitor;

import static dev.outbox4j.monitor.MonitorKit.LONG;
import static dev.outbox4j.monitor.MonitorStatus.CANCELED;
import static dev.outbox4j.monitor.MonitorStatus.COMPLETED;
import static dev.outbox4j.monitor.MonitorStatus.FAILED;
import static dev.outbox4j.monitor.MonitorStatus.PENDING;
import static dev.outbox4j.monitor.MonitorStatus.RUNNING;
import static dev.outbox4j.monitor.MonitorStatus.SUSPENDED;
import static dev.outbox4j.monitor.MonitorStatus.TERMINATED;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.monitor.http.MonitorHttp;
import dev.outbox4j.monitor.http.MonitorRequest;
import dev.outbox4j.monitor.http.MonitorResponse;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.PayloadCodec;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Type;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Monitors by HTTP: what each request of each status is answered, and what is refused. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class MonitorHttpIT {
  private static final MonitorType<Json> WATCH =
      MonitorType.of("watch").every(LONG).retry(RetryPolicy.none());
  private static final String BASE = "https://shop.example/ops";
  private static final String LONG_AGO = "createdTimeFrom=1970-01-01T00:00:00Z";
  private static final ObjectMapper JSON = new ObjectMapper();

  private final TestDatabase database;
  private final MonitorKit kit;
  private final MonitorControl control;
  private final MonitorHttp http;

  MonitorHttpIT(TestDatabase database) {
    this.database = database;
    this.kit = new MonitorKit(database, database.pool(8));
    this.control = kit.control();
    this.http = MonitorHttp.builder(control).type(WATCH).baseUrl(BASE).build();
  }

  @BeforeEach
  void setUp() {
    MonitorKit.migrate(database);
  }

  @AfterEach
  void stop() {
    kit.close();
  }

  private MonitorResponse send(String method, String target, String body) {
    return send(http, method, target, body.getBytes(StandardCharsets.UTF_8));
  }

  private MonitorResponse send(String method, String target) {
    return send(method, target, "");
  }

  private static MonitorResponse send(MonitorHttp http, String method, String target, byte[] body) {
    int mark = target.indexOf('?');
    MonitorResponse response =
        http.handle(
            MonitorRequest.of(
                method,
                mark < 0 ? target : target.substring(0, mark),
                mark < 0 ? null : target.substring(mark + 1),
                body));
    assertThat(response.headers().containsKey("Content-Type"))
        .as("who has a body says that it is JSON")
        .isEqualTo(!response.body().isEmpty());
    return response;
  }

  private static JsonNode json(MonitorResponse response) {
    try {
      return JSON.readTree(response.body());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Who is told that it was not would start another. */
  @Test
  void aStartThatCannotBeWaitedForIsAStart() {
    CountingDataSource cut = new CountingDataSource(database.plain());
    cut.beforeEach(
        sql -> {
          if (sql.contains("m.custom_status::text")) {
            throw new OutboxStoreException("cut", Fault.CONNECTION, true, "08006", null);
          }
        });
    MonitorResponse response = send(httpOf(cut), "POST", "/monitors/watch?timeout=2", new byte[0]);

    assertThat(response.status()).isEqualTo(202);
    assertThat(database.count("outbox_monitor")).isEqualTo(1);
    assertThat(response.headers().get("Location")).endsWith(idOfTheOnly());
  }

  @Test
  void whetherItWasStartedMayNotBeKnownAndThenItsIdIs() {
    LostAnswers answers = new LostAnswers();
    answers.loseNext(1);
    MonitorHttp of = httpOf(answers.of(database.plain()));
    MonitorResponse response = send(of, "POST", "/monitors/watch", new byte[0]);

    assertThat(response.status()).isEqualTo(503);
    assertThat(response.headers().get("Location")).endsWith(idOfTheOnly());
  }

  private MonitorHttp httpOf(DataSource source) {
    MonitorControl of = MonitorControl.of(PostgresOutbox.on(source, database.table()), "shop");
    return MonitorHttp.builder(of).type(WATCH).build();
  }

  private String idOfTheOnly() {
    return database.one(String.class, "select id from outbox_monitor");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "c +999999999-12-31T23:59:59Z x",
        "c -999999999-12-31T23:59:59Z x",
        "c 2026-01-01T00:00:00Z x\0y"
      })
  void aForgedContinuationIsRefused(String text) {
    String token =
        Base64.getUrlEncoder()
            .withoutPadding()
            .encodeToString(text.getBytes(StandardCharsets.UTF_8));

    assertThat(send("GET", "/instances?continuationToken=" + token).status()).isEqualTo(400);
  }

  /** An instance with a state, whose next check is in an hour. */
  private void given(String id, MonitorStatus status) {
    control.start(MonitorStart.of(WATCH, Json.of("{\"n\": 1.50}")).id(id).firstCheckIn(LONG));
    if (status == PENDING) {
      return;
    }
    String stored = status.name().toLowerCase(Locale.ROOT);
    database.update(
        "update outbox_monitor set status = ?, state = '1', custom_status = '\"so far\"',"
            + " output = case when ? then '{\"found\" : 3.0}'::json end, started_at = now(),"
            + " iteration = 3, last_error = case when ? = 'failed' then 'it broke' end,"
            + " ended_at = case when ? then now() end, due_at = case when not ? then due_at end,"
            + " outcome = case when ? = 'completed' then 'condition_met' end where id = ?",
        stored,
        status.isFinished(),
        stored,
        status.isFinished(),
        status.isFinished(),
        stored,
        id);
    if (status.isFinished()) {
      database.update(
          "delete from outbox where id = (select message_id from outbox_monitor where id = ?)", id);
    }
  }

  private List<String> whole() {
    List<String> rows = new ArrayList<>();
    for (String table : List.of("outbox_monitor", "outbox_monitor_event", "outbox")) {
      rows.addAll(
          database.list(String.class, "select t::text from " + table + " t order by t::text"));
    }
    return rows;
  }

  static Stream<Arguments> table() {
    List<Arguments> rows = new ArrayList<>();
    rows.add(arguments(null, "POST /monitors/watch/x", 202, PENDING));
    rows.add(arguments(null, "GET /instances/x", 404, null));
    for (String verb : List.of("terminate", "suspend", "resume", "restart", "wake")) {
      rows.add(arguments(null, "POST /instances/x/" + verb, 404, null));
    }
    rows.add(arguments(null, "POST /instances/x/raiseEvent/news", 404, null));
    rows.add(arguments(null, "DELETE /instances/x", 404, null));
    rows.add(arguments(null, "DELETE /instances?" + LONG_AGO, 200, null));
    rows.add(arguments(null, "GET /instances", 200, null));
    for (MonitorStatus alive : List.of(PENDING, RUNNING, SUSPENDED)) {
      boolean suspended = alive == SUSPENDED;
      rows.add(arguments(alive, "POST /monitors/watch/x", 409, alive));
      rows.add(arguments(alive, "GET /instances/x", 202, alive));
      rows.add(arguments(alive, "POST /instances/x/terminate?reason=enough", 202, TERMINATED));
      rows.add(arguments(alive, "POST /instances/x/suspend?reason=holiday", 202, SUSPENDED));
      rows.add(
          arguments(alive, "POST /instances/x/resume?reason=", 202, suspended ? RUNNING : alive));
      rows.add(arguments(alive, "POST /instances/x/restart", 409, alive));
      rows.add(arguments(alive, "POST /instances/x/wake", suspended ? 409 : 202, alive));
      rows.add(arguments(alive, "POST /instances/x/wake twice", suspended ? 409 : 202, alive));
      rows.add(arguments(alive, "POST /instances/x/raiseEvent/news", 202, alive));
      rows.add(arguments(alive, "DELETE /instances/x", 409, alive));
      rows.add(arguments(alive, "DELETE /instances?" + LONG_AGO, 200, alive));
      rows.add(arguments(alive, "GET /instances", 200, alive));
    }
    for (MonitorStatus ended : List.of(COMPLETED, FAILED, CANCELED, TERMINATED)) {
      rows.add(arguments(ended, "POST /monitors/watch/x", 202, PENDING));
      rows.add(arguments(ended, "GET /instances/x", 200, ended));
      rows.add(
          arguments(
              ended,
              "GET /instances/x?returnInternalServerErrorOnFailure=true",
              ended == FAILED ? 500 : 200,
              ended));
      for (String verb :
          List.of("terminate", "suspend", "resume", "wake", "wake twice", "raiseEvent/news")) {
        rows.add(arguments(ended, "POST /instances/x/" + verb, 410, ended));
      }
      rows.add(arguments(ended, "POST /instances/x/restart?reason=again", 202, PENDING));
      rows.add(arguments(ended, "DELETE /instances/x", 200, null));
      rows.add(arguments(ended, "DELETE /instances?" + LONG_AGO, 200, null));
      rows.add(arguments(ended, "GET /instances", 200, ended));
    }
    return rows.stream();
  }

  @ParameterizedTest
  @MethodSource("table")
  void answersWhatTheTableSays(
      @Nullable MonitorStatus status, String request, int code, @Nullable MonitorStatus after) {
    if (status != null) {
      given("x", status);
    }
    String[] parts = request.split(" ", 3);
    if (parts.length > 2) { // twice
      send(parts[0], parts[1]);
    }
    List<String> before = whole();

    MonitorResponse response = send(parts[0], parts[1]);

    assertThat(response.status()).as(response.body()).isEqualTo(code);
    assertThat(control.get("x").map(MonitorInstance::status).orElse(null)).isEqualTo(after);
    if (code >= 400 || parts[0].equals("GET")) {
      assertThat(whole()).as("nothing has changed").isEqualTo(before);
    }
    if (code >= 400 && code != 500) {
      assertThat(json(response).path("error").asText()).isNotBlank();
    }
    if (request.equals("GET /instances")) {
      assertThat(json(response).path("instances").findValuesAsText("runtimeStatus"))
          .isEqualTo(status == null ? List.of() : List.of(shown(status)));
    }
    if (request.startsWith("GET /instances/x") && code != 404) {
      assertThat(json(response).path("runtimeStatus").asText()).isEqualTo(shown(after));
    }
    if (parts[0].equals("GET") && code == 202) {
      assertThat(response.headers())
          .containsEntry("Retry-After", "5")
          .containsEntry("Location", BASE + "/instances/x");
    }
  }

  /** As its users write it: Running. */
  private static String shown(MonitorStatus status) {
    return status.name().charAt(0) + status.name().substring(1).toLowerCase(Locale.ROOT);
  }

  @Test
  void aStartSaysWhereAllIsThatCanBeDone() {
    MonitorResponse response = send("POST", "/monitors/watch/a%20b", "[1]");

    assertThat(response.status()).isEqualTo(202);
    assertThat(response.headers())
        .containsEntry("Location", BASE + "/instances/a%20b")
        .containsEntry("Retry-After", "10");
    JsonNode uris = json(response);
    assertThat(uris.path("id").asText()).isEqualTo("a b");
    assertThat(follow("GET", uris, "statusQueryGetUri")).isEqualTo(202);
    assertThat(follow("POST", uris, "sendEventPostUri")).isEqualTo(202);
    assertThat(follow("POST", uris, "wakePostUri")).isEqualTo(202);
    assertThat(follow("POST", uris, "suspendPostUri")).isEqualTo(202);
    assertThat(follow("POST", uris, "resumePostUri")).isEqualTo(202);
    assertThat(follow("POST", uris, "terminatePostUri")).isEqualTo(202);
    assertThat(follow("POST", uris, "restartPostUri")).isEqualTo(202);
    assertThat(follow("POST", uris, "terminatePostUri")).isEqualTo(202);
    assertThat(follow("DELETE", uris, "purgeHistoryDeleteUri")).isEqualTo(200);
    assertThat(control.get("a b")).isEmpty();
  }

  private int follow(String method, JsonNode uris, String name) {
    String uri = uris.path(name).asText();
    assertThat(uri).startsWith(BASE + "/instances/a%20b");
    String target =
        uri.substring(BASE.length()).replace("{text}", "ok").replace("{eventName}", "e");
    return send(method, target).status();
  }

  @Test
  void aStartWithoutAnIdHasARandomOne() {
    String first = json(send("POST", "/monitors/watch")).path("id").asText();
    String second = json(send("POST", "/monitors/watch")).path("id").asText();

    assertThat(first).isNotEqualTo(second);
    assertThat(kit.get(first).input()).contains(Json.NULL);
    assertThat(kit.get(second).status()).isEqualTo(PENDING);
  }

  @Test
  void whoWaitsIsGivenTheOutputIfItIsThereInTime() {
    kit.start(
        WATCH,
        call ->
            switch (call.input().text()) {
              case "1" -> MonitorResult.done(Json.of("{\"found\" : 3.0}"));
              case "2" -> MonitorResult.done();
              case "3" -> MonitorResult.cancel("nobody asks");
              case "4" -> MonitorResult.fail("it will never be so");
              default -> MonitorResult.again();
            });
    String wait = "?timeout=30&pollingInterval=0.1";

    MonitorResponse done = send("POST", "/monitors/watch/done" + wait, "1");
    assertThat(done.status()).isEqualTo(200);
    assertThat(done.body()).isEqualTo("{\"found\" : 3.0}");
    assertThat(done.headers()).containsEntry("Location", BASE + "/instances/done");
    MonitorResponse empty = send("POST", "/monitors/watch" + wait, "2");
    assertThat(empty.status()).isEqualTo(200);
    assertThat(empty.body()).isEqualTo("null");
    MonitorResponse canceled = send("POST", "/monitors/watch" + wait, "3");
    assertThat(canceled.status()).isEqualTo(200);
    assertThat(json(canceled).path("runtimeStatus").asText()).isEqualTo("Canceled");
    assertThat(json(canceled).path("output").asText()).isEqualTo("nobody asks");
    MonitorResponse failed = send("POST", "/monitors/watch" + wait, "4");
    assertThat(failed.status()).isEqualTo(200);
    assertThat(json(failed).path("failure").path("message").asText())
        .isEqualTo("it will never be so");
    assertThat(
            send("POST", "/monitors/watch" + wait + "&returnInternalServerErrorOnFailure=true", "4")
                .status())
        .isEqualTo(500);
    MonitorResponse late =
        send("POST", "/monitors/watch/late?timeout=0.2&pollingInterval=0.1", "5");
    assertThat(late.status()).isEqualTo(202);
    assertThat(late.headers()).containsEntry("Retry-After", "10");
    assertThat(kit.get("late").status().isFinished()).isFalse();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "timeout=x",
        "timeout=-1",
        "timeout=301",
        "timeout=1&pollingInterval=0",
        "pollingInterval=1",
        "timeout=1&timeout=2",
        "timeOut=1",
        "returnInternalServerErrorOnFailure=maybe",
        "timeout=%zz"
      })
  void aStartWithABadParameterStartsNothing(String query) {
    assertThat(send("POST", "/monitors/watch/x?" + query).status()).isEqualTo(400);
    assertThat(database.count("outbox_monitor")).isZero();
  }

  static List<String> badIds() {
    return List.of(
        "",
        "%20",
        "@x",
        "a%2Fb",
        "a%5Cb",
        "a%23b",
        "a%3Fb",
        "a%0Ab",
        "%00",
        "%zz",
        "%",
        "%C3",
        "%ED%A0%80",
        "..",
        "%2e%2E",
        ".",
        "x".repeat(257));
  }

  @ParameterizedTest
  @MethodSource("badIds")
  void aBadIdIsRefusedByAll(String id) {
    given("x", RUNNING);
    List<String> before = whole();
    for (String request :
        List.of(
            "POST /monitors/watch/%s",
            "GET /instances/%s",
            "DELETE /instances/%s",
            "POST /instances/%s/terminate",
            "POST /instances/%s/suspend",
            "POST /instances/%s/resume",
            "POST /instances/%s/restart",
            "POST /instances/%s/wake",
            "POST /instances/%s/raiseEvent/e")) {
      String[] parts = request.formatted(id).split(" ", 2);
      MonitorResponse response = send(parts[0], parts[1]);
      assertThat(response.status()).as(request + response.body()).isEqualTo(400);
      assertThat(json(response).path("error").asText()).isNotBlank();
    }
    assertThat(whole()).isEqualTo(before);
  }

  @ParameterizedTest
  @ValueSource(strings = {"a b", "a+b", "100%", "ü€🙂", "a&b=c;d", "{x}", "x:y@z", "...", "'\""})
  void anIdMayHaveAllElse(String id) {
    String encoded = URLEncoder.encode(id, StandardCharsets.UTF_8).replace("+", "%20");

    MonitorResponse started = send("POST", "/monitors/watch/" + encoded);

    assertThat(started.status()).isEqualTo(202);
    assertThat(control.get(id)).isPresent();
    String location = started.headers().get("Location");
    MonitorResponse found = send("GET", location.substring(BASE.length()));
    assertThat(json(found).path("instanceId").asText()).isEqualTo(id);
  }

  @ParameterizedTest
  @ValueSource(strings = {"{", "{}}", "nothing", "'a'", "[1,]", "\u0000", "{\"a\":\"\n\"}"})
  void whatIsNoJsonIsRefused(String body) {
    given("x", RUNNING);
    List<String> before = whole();

    assertThat(send("POST", "/monitors/watch/y", body).status()).isEqualTo(400);
    assertThat(send("POST", "/instances/x/raiseEvent/e", body).status()).isEqualTo(400);

    assertThat(whole()).isEqualTo(before);
    assertThat(send("POST", "/instances/x/raiseEvent/e", "{}").status()).isEqualTo(202);
  }

  @Test
  void whatIsNotUtf8IsRefused() {
    byte[] body = {'"', (byte) 0xff, '"'};
    MonitorResponse response = send(http, "POST", "/monitors/watch/y", body);
    assertThat(response.status()).isEqualTo(400);
    assertThat(control.get("y")).isEmpty();
  }

  @Test
  void aBodyIsAsLargeAsItMayBe() {
    given("x", RUNNING);
    List<String> before = whole();
    String largest = "\"" + "a".repeat(MonitorHttp.MAX_BODY_BYTES - 2) + "\"";

    assertThat(send("POST", "/monitors/watch/y", largest + " ").status()).isEqualTo(413);
    assertThat(send("POST", "/instances/x/raiseEvent/e", largest + " ").status()).isEqualTo(413);
    assertThat(whole()).isEqualTo(before);

    assertThat(send("POST", "/monitors/watch/y", largest).status()).isEqualTo(202);
    assertThat(send("POST", "/instances/x/raiseEvent/e", largest).status()).isEqualTo(202);
    assertThat(kit.get("y").input().orElseThrow().text()).isEqualTo(largest);
  }

  @Test
  void anInputThatIsNotOfItsTypeIsRefused() {
    MonitorType<Long> count = MonitorType.of("count", Long.class);
    MonitorHttp typed = MonitorHttp.builder(control.codec(new NumberCodec())).type(count).build();
    byte[] bad = "\"x\"".getBytes(StandardCharsets.UTF_8);
    byte[] good = "7".getBytes(StandardCharsets.UTF_8);

    assertThat(send(typed, "POST", "/monitors/count/y", bad).status()).isEqualTo(400);
    assertThat(control.get("y")).isEmpty();
    MonitorResponse started = send(typed, "POST", "/monitors/count/y", good);
    assertThat(started.headers()).containsEntry("Location", "/instances/y");
  }

  @Test
  void theStatusShowsWhatIsOnRecord() {
    given("x", RUNNING);
    control.raiseEvent("x", "news", Json.of("{\"b\" : 2.0}"));

    MonitorResponse response = send("GET", "/instances/x?showHistory=true");

    JsonNode status = json(response);
    assertThat(status.path("name").asText()).isEqualTo("watch");
    assertThat(status.path("runtimeStatus").asText()).isEqualTo("Running");
    assertThat(status.path("iterations").asInt()).isEqualTo(3);
    assertThat(status.path("customStatus").asText()).isEqualTo("so far");
    assertThat(response.body())
        .as("values are as they were given")
        .contains("\"input\":{\"n\": 1.50}", "\"payload\":{\"b\" : 2.0}");
    assertThat(status.path("historyEvents").findValuesAsText("kind"))
        .containsExactly("EVENT", "STARTED");
    assertThat(status.has("output")).isFalse();
    assertThat(status.has("dueTime")).isTrue();
    JsonNode without = json(send("GET", "/instances/x?showInput=false"));
    assertThat(without.has("input")).isFalse();
    assertThat(without.has("historyEvents")).isFalse();
  }

  @Test
  void theStatusSaysHowItEnded() {
    given("done", COMPLETED);
    given("failed", FAILED);

    MonitorResponse done = send("GET", "/instances/done");
    assertThat(json(done).path("outcome").asText()).isEqualTo("CONDITION_MET");
    assertThat(done.body()).contains("\"output\":{\"found\" : 3.0}");
    assertThat(json(done).has("endedTime")).isTrue();
    assertThat(done.headers()).doesNotContainKey("Retry-After");
    JsonNode failed = json(send("GET", "/instances/failed"));
    assertThat(failed.path("failure").path("message").asText()).isEqualTo("it broke");
    send("POST", "/monitors/watch/x");
    send("POST", "/instances/x/terminate?reason=nobody+asks+%E2%82%AC");
    assertThat(json(send("GET", "/instances/x")).path("output").asText())
        .isEqualTo("nobody asks €");
    send("POST", "/monitors/watch/y");
    send("POST", "/instances/y/terminate");
    assertThat(json(send("GET", "/instances/y")).path("output").asText())
        .isEqualTo("no reason given");
  }

  /** Of the first column of a table; what is in no table is said in the text below it. */
  @Test
  void theDocumentHasAllFieldsOfAStatus() throws IOException {
    kit.start(WATCH, call -> call.events("go").isEmpty() ? waits() : fails());
    control.start(MonitorStart.of(WATCH, Json.of("1")).id("x").parent("p").expiresAfter(LONG));
    kit.awaitInstance("x", now -> now.iterations() == 1);
    Set<String> shown = new TreeSet<>();
    Set<String> ofEntries = new TreeSet<>();
    collect(shown, ofEntries);
    control.suspend("x", "as after an attempt that failed");
    database.update("update outbox_monitor set last_error = 'no answer'");
    collect(shown, ofEntries);
    control.resume("x", "go on");
    control.raiseEvent("x", "go", Json.of("7"));
    kit.awaitStatus("x", FAILED);
    collect(shown, ofEntries);
    control.restart("x", "again");
    control.terminate("x", "enough");
    collect(shown, ofEntries);
    given("done", COMPLETED);
    json(send("GET", "/instances/done")).fieldNames().forEachRemaining(shown::add);

    String document = Files.readString(Path.of("..", "docs", "monitors.md"));
    String part = document.substring(document.indexOf("| field of a status | is |"));
    part = part.substring(0, part.indexOf("An input is compared"));
    Set<String> fields = new TreeSet<>();
    Set<String> fieldsOfEntries = new TreeSet<>();
    for (String line : part.split("\n", -1)) {
      boolean row = line.startsWith("|");
      String names = row ? line.split("\\|", -1)[1] : line;
      Pattern.compile("`(\\w+)`")
          .matcher(names)
          .results()
          .forEach(found -> (row ? fields : fieldsOfEntries).add(found.group(1)));
    }
    assertThat(fields).isEqualTo(shown);
    assertThat(fieldsOfEntries).isEqualTo(ofEntries);
  }

  private void collect(Set<String> shown, Set<String> ofEntries) {
    JsonNode status = json(send("GET", "/instances/x?showHistory=true"));
    status.fieldNames().forEachRemaining(shown::add);
    status
        .path("historyEvents")
        .forEach(entry -> entry.fieldNames().forEachRemaining(ofEntries::add));
  }

  private static MonitorResult waits() {
    return MonitorResult.again().withStatus(Json.of("\"so far\"")).orOn("go");
  }

  private static MonitorResult fails() {
    throw new IllegalStateException("it broke");
  }

  @Test
  void aReasonThatIsTooLongIsRefused() {
    given("x", RUNNING);
    String reason = "x".repeat(2_001);
    assertThat(send("POST", "/instances/x/terminate?reason=" + reason).status()).isEqualTo(400);
    assertThat(kit.get("x").status()).isEqualTo(RUNNING);
  }

  @Test
  void anEventReachesItsCheck() {
    List<String> seen = new CopyOnWriteArrayList<>();
    kit.start(
        WATCH,
        call -> {
          call.events().forEach(event -> seen.add(event.name() + event.payload().text()));
          return seen.size() < 2 ? MonitorResult.again().orOn("go on") : MonitorResult.done();
        });
    send("POST", "/monitors/watch/x");
    kit.awaitInstance("x", instance -> !instance.waitsFor().isEmpty());

    assertThat(send("POST", "/instances/x/raiseEvent/go%20on", "{\"a\" : 1.0}").status())
        .isEqualTo(202);
    kit.awaitInstance("x", instance -> instance.iterations() >= 2);
    assertThat(send("POST", "/instances/x/raiseEvent/go%20on").status()).isEqualTo(202);

    kit.awaitStatus("x", COMPLETED);
    assertThat(seen).containsExactly("go on{\"a\" : 1.0}", "go onnull");
  }

  @Test
  void moreEventsThanMayWaitAreRefused() {
    given("x", RUNNING);
    for (int i = 0; i < MonitorControl.MAX_UNSEEN_EVENTS; i++) {
      control.raiseEvent("x", "e", Json.NULL);
    }
    assertThat(send("POST", "/instances/x/raiseEvent/e").status()).isEqualTo(429);
    assertThat(send("POST", "/instances/x/raiseEvent/%20").status()).isEqualTo(400);
    assertThat(send("POST", "/instances/x/raiseEvent/" + "e".repeat(201)).status()).isEqualTo(400);
  }

  @Test
  void listsComeInPages() {
    for (int i = 1; i <= 5; i++) {
      given("a" + i, i % 2 == 0 ? COMPLETED : RUNNING);
    }
    given("b1", RUNNING);

    assertThat(pages("/instances?top=2")).containsExactly("a1 a2", "a3 a4", "a5 b1");
    assertThat(pages("/instances?top=2&instanceIdPrefix=a"))
        .containsExactly("a1 a2", "a3 a4", "a5");
    assertThat(pages("/instances?top=5&runtimeStatus=Completed,Failed")).containsExactly("a2 a4");
    assertThat(pages("/instances?createdTimeTo=2000-01-01T00:00:00Z")).containsExactly("");
    assertThat(pages("/instances?type=other")).containsExactly("");
    assertThat(pages("/instances?type=watch&" + LONG_AGO)).containsExactly("a1 a2 a3 a4 a5 b1");
    assertThat(pages("/instances?parent=p")).containsExactly("");
    assertThat(send("GET", "/instances").body()).doesNotContain("\"input\"");
    assertThat(send("GET", "/instances?showInput=true").body()).contains("\"input\":{\"n\": 1.50}");
  }

  @Test
  void aListShowsOutputsAndNoStates() {
    given("done", COMPLETED);

    JsonNode shown = json(send("GET", "/instances?showInput=true")).path("instances").path(0);

    assertThat(shown.path("output").path("found").asDouble()).isEqualTo(3.0);
    assertThat(shown.path("input").path("n").asDouble()).isEqualTo(1.5);
    assertThat(shown.path("customStatus").asText()).isEqualTo("so far");
    assertThat(shown.has("state")).isFalse();
  }

  /** As many as there is room for, and the others on the next ones. */
  @Test
  void pagesOfLargeInputsAreShort() {
    database.update(
        "insert into outbox_monitor (application, id, type, status, input, created_at)"
            + " select 'shop', 'm' || n, 'watch', 'running', to_json(repeat('x', 250000)),"
            + " '2026-01-01T00:00:00Z'::timestamptz + make_interval(secs => n)"
            + " from generate_series(100, 179) n");

    List<String> pages = pages("/instances?top=1000&showInput=true");

    assertThat(pages).hasSize(3);
    assertThat(String.join(" ", pages).split(" ", -1)).hasSize(80).doesNotHaveDuplicates();
    assertThat(pages("/instances?top=1000")).hasSize(1);
  }

  private List<String> pages(String target) {
    List<String> pages = new ArrayList<>();
    String token = "";
    do {
      MonitorResponse response =
          send("GET", token.isEmpty() ? target : target + "&continuationToken=" + token);
      assertThat(response.status()).as(response.body()).isEqualTo(200);
      pages.add(String.join(" ", json(response).path("instances").findValuesAsText("instanceId")));
      token = json(response).path("continuationToken").asText();
    } while (!token.isEmpty() && pages.size() < 10);
    return pages;
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "top=0",
        "top=1001",
        "top=x",
        "runtimeStatus=Waiting",
        "createdTimeFrom=yesterday",
        "createdTimeTo=2026-11-30T09:00:00+01:00",
        "instanceIdPrefix=a%2F",
        "instanceIdPrefix=",
        "type=",
        "parent=%00",
        "continuationToken=x",
        "continuationToken=",
        "runtimestatus=Running",
        "code=secret"
      })
  void aListWithABadParameterIsRefused(String query) {
    MonitorResponse response = send("GET", "/instances?" + query);
    assertThat(response.status()).isEqualTo(400);
    assertThat(json(response).path("error").asText()).isNotBlank();
  }

  @Test
  void aPurgeCountsWhatItDeleted() {
    given("a1", COMPLETED);
    given("a2", FAILED);
    given("b1", TERMINATED);
    given("alive", RUNNING);

    MonitorResponse failed = send("DELETE", "/instances?runtimeStatus=Failed&" + LONG_AGO);
    assertThat(failed.status()).isEqualTo(200);
    assertThat(failed.body()).isEqualTo("{\"instancesDeleted\":1,\"more\":false}");
    assertThat(send("DELETE", "/instances?instanceIdPrefix=a&" + LONG_AGO).body())
        .isEqualTo("{\"instancesDeleted\":1,\"more\":false}");
    assertThat(send("DELETE", "/instances?" + LONG_AGO).body())
        .isEqualTo("{\"instancesDeleted\":1,\"more\":false}");
    assertThat(send("DELETE", "/instances?" + LONG_AGO).body())
        .isEqualTo("{\"instancesDeleted\":0,\"more\":false}");
    assertThat(control.get("alive")).isPresent();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "?runtimeStatus=Failed",
        "?createdTimeTo=2100-01-01T00:00:00Z",
        "?createdTimeFrom=",
        "?createdTimeFrom=1970-01-01T00:00:00Z&runtimeStatus=Running",
        "?createdTimeFrom=1970-01-01T00:00:00Z&runtimestatus=Failed",
        "?createdTimeFrom=1970-01-01T00:00:00Z&top=1"
      })
  void aPurgeThatSaysTooLittleOrNonsenseDeletesNothing(String query) {
    given("a1", COMPLETED);
    assertThat(send("DELETE", "/instances" + query).status()).isEqualTo(400);
    assertThat(control.get("a1")).isPresent();
  }

  @Test
  void aPurgeOfMoreThanAThousandDeletesAll() {
    database.update(
        "insert into outbox_monitor (application, id, type, status, input, ended_at)"
            + " select 'shop', 'm' || i, 'watch', 'canceled', 'null', now()"
            + " from generate_series(1, 1500) i");
    assertThat(send("DELETE", "/instances?" + LONG_AGO).body())
        .isEqualTo("{\"instancesDeleted\":1500,\"more\":false}");
    assertThat(database.count("outbox_monitor")).isZero();
  }

  @ParameterizedTest
  @CsvSource({
    "GET, /, 404",
    "GET, '', 404",
    "GET, /instances/x/y/z, 404",
    "POST, /instances/x/rewind, 404",
    "POST, /instances/x/raiseEvent, 404",
    "POST, /instances/x/raiseEvent/a/b, 404",
    "POST, /monitors, 404",
    "POST, /monitors/other, 404",
    "POST, /monitors/watch/x/y, 404",
    "GET, /monitors/watch, 405",
    "PUT, /instances/x, 405",
    "POST, /instances, 405",
    "GET, /instances/x/terminate, 405",
    "DELETE, /instances/x/raiseEvent/e, 405",
    "post, /monitors/watch, 405"
  })
  void thereIsNothingElse(String method, String path, int code) {
    MonitorResponse response = send(method, path);
    assertThat(response.status()).isEqualTo(code);
    assertThat(response.headers().containsKey("Allow")).isEqualTo(code == 405);
    assertThat(database.count("outbox_monitor")).isZero();
  }

  @Test
  void aMethodThatIsNotThereIsToldWhichAre() {
    assertThat(send("PUT", "/instances/x").headers()).containsEntry("Allow", "DELETE, GET");
  }

  @Test
  void whatTheDatabaseDoesNotDoIsNoFaultOfTheCaller() throws Exception {
    given("x", RUNNING);
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger.createStatement().execute("select 1 from outbox_monitor where id = 'x' for update");
      MonitorResponse response = send("POST", "/instances/x/terminate");
      assertThat(response.status()).isEqualTo(503);
      assertThat(response.headers()).containsEntry("Retry-After", "5");
      assertThat(response.body()).doesNotContain("lock", "outbox");
      stranger.rollback();
    }
    assertThat(send("POST", "/instances/x/terminate").status()).isEqualTo(202);
  }

  /** Such as of a registry of schemas that cannot be reached. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void whatTheCodecDoesNotDoIsNoFaultOfTheCallerEither(boolean checked) {
    MonitorType<Long> count = MonitorType.of("count", Long.class);
    PayloadCodec broken =
        new PayloadCodec() {
          @Override
          public String contentType() {
            return "application/json";
          }

          @Override
          public Payload encode(Object body) {
            return Payload.ofText("1");
          }

          @Override
          public Object decode(Payload payload, Map<String, String> headers, Type type)
              throws IOException {
            if (checked) {
              throw new IOException("no route to registry");
            }
            throw new UncheckedIOException(new IOException("no route to registry"));
          }
        };
    MonitorHttp typed = MonitorHttp.builder(control.codec(broken)).type(count).build();
    byte[] body = "7".getBytes(StandardCharsets.UTF_8);

    MonitorResponse response = send(typed, "POST", "/monitors/count/y", body);

    assertThat(response.status()).isEqualTo(503);
    assertThat(response.body()).doesNotContain("registry");
    assertThat(control.get("y")).isEmpty();
  }

  @Test
  void anotherApplicationHasOtherInstances() {
    given("x", RUNNING);
    MonitorHttp other = MonitorHttp.builder(MonitorControl.of(kit.outbox(), "other")).build();
    assertThat(send(other, "GET", "/instances/x", new byte[0]).status()).isEqualTo(404);
    assertThat(send(other, "POST", "/instances/x/terminate", new byte[0]).status()).isEqualTo(404);
    assertThat(send(other, "GET", "/instances", new byte[0]).body())
        .isEqualTo("{\"instances\":[]}");
    assertThat(kit.get("x").status()).isEqualTo(RUNNING);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"", "ops", "/ops/", "https://", "https://x/?a=b", "/a#b", "/a b", "http:/x"})
  void aBaseThatIsNoneIsRefused(String url) {
    MonitorHttp.Builder builder = MonitorHttp.builder(control);
    assertThatThrownBy(() -> builder.baseUrl(url))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("baseUrl is '" + url + "'");
  }

  @Test
  void whatIsDefinedTwiceOrOutOfRangeIsRefused() {
    MonitorHttp.Builder builder = MonitorHttp.builder(control).type(WATCH);
    assertThatThrownBy(() -> builder.type(WATCH)).isInstanceOf(IllegalArgumentException.class);
    for (Duration time : List.of(Duration.ZERO, Duration.ofMillis(999), Duration.ofDays(2))) {
      assertThatThrownBy(() -> builder.longestWait(time))
          .isInstanceOf(IllegalArgumentException.class);
    }
    MonitorHttp short1 = builder.longestWait(Duration.ofSeconds(1)).build();
    assertThat(send(short1, "POST", "/monitors/watch/x?timeout=2", new byte[0]).status())
        .isEqualTo(400);
    assertThat(new MonitorResponse(200, Map.of(), "").headers()).isEmpty();
  }
}
