package dev.outbox4j.examples.monitor;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.monitor.MonitorCall;
import dev.outbox4j.monitor.MonitorCheck;
import dev.outbox4j.monitor.MonitorResult;
import dev.outbox4j.monitor.MonitorType;
import java.io.IOException;
import java.time.Duration;
import java.util.OptionalInt;

/** Looks whether a repository has too many open issues. */
final class OpenIssuesCheck implements MonitorCheck<IssueWatch> {
  /** Every minute for five minutes; while the API fails, four times a check. */
  static final MonitorType<IssueWatch> TYPE =
      MonitorType.of("open-issues", IssueWatch.class)
          .every(Duration.ofMinutes(1))
          .expiresAfter(Duration.ofMinutes(5))
          .retry(RetryPolicy.exponential(Duration.ofSeconds(1)).attempts(4));

  private final IssuesApi api;

  OpenIssuesCheck(IssuesApi api) {
    this.api = api;
  }

  @Override
  public MonitorResult check(MonitorCall<IssueWatch> call)
      throws IOException, InterruptedException {
    IssueWatch watch = call.input();
    OptionalInt found = api.openIssues(watch.repository()); // what it throws means: try again
    if (found.isEmpty()) {
      return MonitorResult.fail("there is no repository " + watch.repository());
    }
    OpenIssues seen = new OpenIssues(found.getAsInt());
    if (seen.openIssues() < watch.threshold()) {
      return MonitorResult.again().withStatus(seen);
    }
    IssueAlert alert =
        new IssueAlert(call.id(), call.execution(), watch.repository(), seen.openIssues());
    return MonitorResult.done(
        seen, OutboxMessage.to(IssueAlert.QUEUE).type(IssueAlert.TYPE).body(alert).build());
  }
}
