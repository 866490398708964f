package dev.outbox4j.monitor.http;

import dev.outbox4j.monitor.HistoryEntry;
import dev.outbox4j.monitor.MonitorControl;
import dev.outbox4j.monitor.MonitorQuery;
import dev.outbox4j.monitor.MonitorQuery.Value;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/** Looks at instances. */
final class Lookups {
  private static final int MOST_ENTRIES = 1_000;
  private static final String SHOW_INPUT = "showInput";
  private static final String SHOW_HISTORY = "showHistory";
  private static final String TOP = "top";
  private static final String CONTINUATION = "continuationToken";
  private static final Set<String> OF_STATUS =
      Set.of(SHOW_INPUT, SHOW_HISTORY, Replies.ERROR_ON_FAILURE);
  private static final Set<String> OF_LIST = Selection.and(SHOW_INPUT, TOP, CONTINUATION);

  private final MonitorControl control;
  private final Replies replies;

  Lookups(MonitorControl control, Replies replies) {
    this.control = control;
    this.replies = replies;
  }

  MonitorResponse status(MonitorRequest request, String id) {
    QueryParameters asked = QueryParameters.parse(request.query(), OF_STATUS);
    boolean showsInput = asked.flag(SHOW_INPUT, true);
    boolean showsHistory = asked.flag(SHOW_HISTORY, false);
    boolean errorOnFailure = asked.flag(Replies.ERROR_ON_FAILURE, false);
    return control
        .get(id)
        .map(
            instance ->
                replies.status(instance, showsInput, history(id, showsHistory), errorOnFailure))
        .orElseGet(() -> Replies.unknown(id));
  }

  private Optional<List<HistoryEntry>> history(String id, boolean shown) {
    return shown ? Optional.of(control.history(id, MOST_ENTRIES)) : Optional.empty();
  }

  MonitorResponse list(MonitorRequest request) {
    QueryParameters asked = QueryParameters.parse(request.query(), OF_LIST);
    MonitorQuery query = Selection.of(asked);
    query = asked.number(TOP).map(query::limit).orElse(query);
    query = asked.text(CONTINUATION).map(query::after).orElse(query);
    boolean showsInput = asked.flag(SHOW_INPUT, false);
    query = showsInput ? query.with(Value.INPUT, Value.OUTPUT) : query.with(Value.OUTPUT);
    return Replies.ok(Documents.page(control.query(query), showsInput));
  }
}
