package dev.outbox4j.monitor.http;

import dev.outbox4j.monitor.MonitorQuery;
import dev.outbox4j.monitor.MonitorStatus;
import java.util.HashSet;
import java.util.Set;

/** Which instances a request is about. */
final class Selection {
  static final String FROM = "createdTimeFrom";

  private static final String TO = "createdTimeTo";
  private static final String STATUS = "runtimeStatus";
  private static final String TYPE = "type";
  private static final String PREFIX = "instanceIdPrefix";
  private static final String PARENT = "parent";
  private static final Set<String> PARAMETERS = Set.of(FROM, TO, STATUS, TYPE, PREFIX, PARENT);

  private Selection() {}

  /** {@return these parameters and more} */
  static Set<String> and(String... more) {
    Set<String> all = new HashSet<>(PARAMETERS);
    all.addAll(Set.of(more));
    return Set.copyOf(all);
  }

  static MonitorQuery of(QueryParameters asked) {
    MonitorQuery query =
        MonitorQuery.all().status(asked.statuses(STATUS).toArray(MonitorStatus[]::new));
    query = asked.text(TYPE).map(query::type).orElse(query);
    query = asked.instant(FROM).map(query::createdFrom).orElse(query);
    query = asked.instant(TO).map(query::createdBefore).orElse(query);
    query = asked.text(PREFIX).map(query::idPrefix).orElse(query);
    return asked.text(PARENT).map(query::parent).orElse(query);
  }
}
