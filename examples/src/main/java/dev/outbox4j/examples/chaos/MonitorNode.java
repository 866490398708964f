package dev.outbox4j.examples.chaos;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.monitor.Json;
import dev.outbox4j.monitor.MonitorCall;
import dev.outbox4j.monitor.MonitorResult;
import dev.outbox4j.monitor.MonitorType;
import dev.outbox4j.monitor.Monitors;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A process of the {@link MonitorProof}: it runs checks until it is killed. */
final class MonitorNode {
  /** Instances of the proof. */
  static final MonitorType<Json> TYPE =
      MonitorType.of("watch").retry(RetryPolicy.constant(Duration.ofMillis(500)).attempts(5));

  static final String APPLICATION = "proof";
  static final String ALERTS = "alerts";

  /** The queue in which each event is told by the check that was given it. */
  static final String SEEN = "seen";

  /** The header of a message that says of which execution of which instance it is. */
  static final String OF = "of";

  /** The header that says which event it was. */
  static final String EVENT = "event";

  private static final Logger log = LoggerFactory.getLogger(MonitorNode.class);
  private static final int POOL = 6;
  private static final int WORKERS = 16;
  private static final int SHORTEST_WAIT_MILLIS = 1_000;
  private static final int LONGEST_WAIT_MILLIS = 10_000;
  private static final int ONE_OF_SO_MANY_FAILS_ONCE = 50;

  /** Beside those that begin shortly before their expiry. */
  private static final int ONE_OF_SO_MANY_TAKES_A_WHILE = 200;

  private static final Duration LONGEST_CHECK = Duration.ofSeconds(2);

  private final RunLog checks;

  private MonitorNode(RunLog checks) {
    this.checks = checks;
  }

  /** Arguments: name, the server's ports, lease in seconds, directory of what has run. */
  public static void main(String[] arguments) throws IOException {
    String name = arguments[0];
    HikariDataSource pool = Database.pool(arguments[1], POOL, name, false);
    MonitorNode node = new MonitorNode(RunLog.of(Path.of(arguments[3]), name));
    Monitors monitors =
        Monitors.builder(PostgresOutbox.on(pool, OutboxTable.named("outbox")), APPLICATION)
            .on(TYPE, node::check)
            .listen(PgjdbcListen.on(Database.at(arguments[1])))
            .subscriber(
                settings ->
                    settings
                        .name(name)
                        .workers(WORKERS)
                        .lease(Duration.ofSeconds(Long.parseLong(arguments[2]))))
            .build();
    monitors.start();
    Orders.follow(order -> {});
    while (!monitors.health().subscriber().healthy()) {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(50));
    }
    log.info("{}up", Subscriber.HEALTH);
  }

  /** The input is after how many checks the condition is met; 0 if it never is. */
  private MonitorResult check(MonitorCall<Json> call) throws IOException {
    long begun = RunLog.now();
    ThreadLocalRandom random = ThreadLocalRandom.current();
    long met = Long.parseLong(call.input().text());
    if (call.iteration() > 1 && !isOf(call.state(), call.iteration() - 1)) {
      throw new AssertionError("the state is not that of the check before");
    }
    if (takesAWhile(call, random)) {
      checks.begun(run(call, begun, begun));
      Watch.pause(Duration.ofMillis(random.nextLong(LONGEST_CHECK.toMillis() + 1)));
    }
    boolean fails = call.attempt() == 1 && random.nextInt(ONE_OF_SO_MANY_FAILS_ONCE) == 0;
    RunLog.Run run = run(call, begun, RunLog.now());
    if (fails) {
      checks.failed(run);
      throw new IllegalStateException("it could not look");
    }
    checks.done(run);
    int millis = random.nextInt(SHORTEST_WAIT_MILLIS, LONGEST_WAIT_MILLIS + 1);
    Json said = Json.of("{\"check\": %d, \"wait\": %d}".formatted(call.iteration(), millis));
    String of = call.id() + "/" + call.execution();
    List<OutboxMessage> seen =
        call.events().stream()
            .map(
                event ->
                    OutboxMessage.to(SEEN)
                        .type("seen")
                        .header(OF, of)
                        .header(EVENT, event.payload().text())
                        .build())
            .toList();
    if (call.iteration() == met) {
      return MonitorResult.done(said, OutboxMessage.to(ALERTS).type("met").header(OF, of).build())
          .withMessages(seen);
    }
    MonitorResult again = MonitorResult.again(Duration.ofMillis(millis)).withState(said);
    return MonitorPeople.have(Long.parseLong(call.id()))
        ? again.orOn(MonitorPeople.AWAITED).withMessages(seen)
        : again;
  }

  /** So half of those that check shortly before their expiry go on past it. */
  private static boolean takesAWhile(MonitorCall<Json> call, ThreadLocalRandom random) {
    Instant soon = Instant.now().plus(LONGEST_CHECK);
    return call.expiresAt().filter(soon::isAfter).isPresent()
        || random.nextInt(ONE_OF_SO_MANY_TAKES_A_WHILE) == 0;
  }

  private static RunLog.Run run(MonitorCall<Json> call, long began, long ended) {
    return new RunLog.Run(
        Long.parseLong(call.id()), call.iteration(), call.attempt(), began, ended);
  }

  private static boolean isOf(Optional<Json> state, long check) {
    return state.isPresent() && state.get().text().contains("\"check\": " + check + ",");
  }
}
