package dev.outbox4j.monitor.http;

import dev.outbox4j.monitor.MonitorAnswer;
import dev.outbox4j.monitor.MonitorControl;
import dev.outbox4j.monitor.MonitorQuery;
import java.util.Set;

/** Does to instances what people do. */
final class Verbs {
  static final Set<String> KNOWN =
      Set.of(
          MonitorHttp.TERMINATE,
          MonitorHttp.SUSPEND,
          MonitorHttp.RESUME,
          MonitorHttp.RESTART,
          MonitorHttp.WAKE);

  private static final String REASON = "reason";
  private static final String NO_REASON = "no reason given";
  private static final int PURGED_AT_ONCE = 1_000;
  private static final int PURGED_AT_MOST = 10_000;
  private static final Set<String> OF_PURGE = Selection.and();

  private final MonitorControl control;
  private final Replies replies;

  Verbs(MonitorControl control, Replies replies) {
    this.control = control;
    this.replies = replies;
  }

  MonitorResponse apply(MonitorRequest request, String id, String verb) {
    if (verb.equals(MonitorHttp.WAKE)) {
      return wake(request, id);
    }
    String reason =
        QueryParameters.parse(request.query(), Set.of(REASON))
            .text(REASON)
            .filter(text -> !text.isEmpty())
            .orElse(NO_REASON);
    return switch (verb) {
      case MonitorHttp.TERMINATE ->
          MonitorHttp.answer(control.terminate(id, reason), id, Replies.accepted());
      case MonitorHttp.SUSPEND ->
          MonitorHttp.answer(control.suspend(id, reason), id, Replies.accepted());
      case MonitorHttp.RESUME ->
          MonitorHttp.answer(control.resume(id, reason), id, Replies.accepted());
      case MonitorHttp.RESTART ->
          MonitorHttp.answer(control.restart(id, reason), id, replies.started(id));
      default -> throw new AssertionError(verb);
    };
  }

  private MonitorResponse wake(MonitorRequest request, String id) {
    QueryParameters.parse(request.query(), Set.of());
    MonitorAnswer answer = control.wake(id);
    return answer == MonitorAnswer.UNCHANGED
        ? Replies.refused(409, "instance " + id + " is suspended; resume it")
        : MonitorHttp.answer(answer, id, Replies.accepted());
  }

  MonitorResponse raiseEvent(MonitorRequest request, String id, String name) {
    QueryParameters.parse(request.query(), Set.of());
    return MonitorHttp.answer(
        control.raiseEvent(id, name, Bodies.json(request)), id, Replies.accepted());
  }

  MonitorResponse purge(MonitorRequest request, String id) {
    QueryParameters.parse(request.query(), Set.of());
    return MonitorHttp.answer(control.purge(id), id, Replies.ok(Documents.purged(1, false)));
  }

  MonitorResponse purgeAll(MonitorRequest request) {
    MonitorQuery query =
        Selection.of(QueryParameters.parse(request.query(), OF_PURGE)).limit(PURGED_AT_ONCE);
    if (query.createdFrom().isEmpty()) {
      throw new IllegalArgumentException(
          "there is no lower bound, so all would be deleted; give " + Selection.FROM);
    }
    int all = 0;
    int purged;
    do {
      purged = control.purge(query);
      all += purged;
    } while (purged == PURGED_AT_ONCE && all < PURGED_AT_MOST);
    return Replies.ok(Documents.purged(all, purged == PURGED_AT_ONCE));
  }
}
