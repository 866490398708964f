package dev.outbox4j.monitor.internal;

import dev.outbox4j.monitor.MonitorInstance;
import dev.outbox4j.monitor.MonitorQuery;
import dev.outbox4j.monitor.MonitorStatus;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A query as statements: each is put together of constant texts, and walks one index in its order.
 * Immutable.
 */
public final class InstanceQuery {
  /** A page, or a history, ends with what goes beyond it. */
  static final long MOST_BYTES = 8L * 1024 * 1024;

  private static final String CREATED = "c";
  private static final String ID = "i";
  private static final Instant END = Instant.parse("9999-12-31T23:59:59Z");
  private static final int LAST_CODE_POINT = Character.MAX_CODE_POINT;

  private final MonitorQuery query;
  private final @Nullable Place after;

  /**
   * Where a page ended.
   *
   * @param created when the last instance was created; null in the order of ids
   * @param id its id
   */
  private record Place(@Nullable Instant created, String id) {
    String token() {
      String text = created == null ? ID + " " + id : CREATED + " " + created + " " + id;
      return Base64.getUrlEncoder()
          .withoutPadding()
          .encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    static Place parse(String token, boolean byId) {
      try {
        String text =
            StandardCharsets.UTF_8
                .newDecoder()
                .decode(ByteBuffer.wrap(Base64.getUrlDecoder().decode(token)))
                .toString();
        String[] parts = text.split(" ", byId ? 2 : 3);
        if (parts[0].equals(byId ? ID : CREATED) && parts.length == (byId ? 2 : 3)) {
          Place place =
              byId ? new Place(null, parts[1]) : new Place(Instant.parse(parts[1]), parts[2]);
          if (place.isStorable()) {
            return place;
          }
        }
      } catch (CharacterCodingException | IllegalArgumentException | DateTimeException e) {
        throw new IllegalArgumentException(refusal(), e);
      }
      throw new IllegalArgumentException(refusal());
    }

    /** What the server would refuse is no place of a page. */
    private boolean isStorable() {
      return id.indexOf('\0') < 0
          && (created == null || (created.isAfter(Instant.EPOCH) && created.isBefore(END)));
    }

    private static String refusal() {
      return "the continuation is not one of such a query; give what its last page gave, or none";
    }
  }

  /**
   * Takes a query.
   *
   * @param query the query
   * @throws IllegalArgumentException if its continuation is not one of such a query
   */
  public InstanceQuery(MonitorQuery query) {
    this.query = query;
    this.after = query.after().map(token -> Place.parse(token, byId(query))).orElse(null);
  }

  private static boolean byId(MonitorQuery query) {
    return query.idPrefix().isPresent() || query.parent().isPresent();
  }

  /** {@return the continuation behind an instance} */
  public String continuation(MonitorInstance last) {
    return new Place(byId(query) ? null : last.createdAt(), last.id()).token();
  }

  /**
   * {@return what reads a page, and one instance more if there is room; each with how many there
   * are up to that one, also without room}
   */
  String select() {
    return """
        select {columns}, m.found
        from (
          select l.*, count(*) over () as found,
            sum({bytes}) over ({order of l} rows between unbounded preceding and 1 preceding)
              as bytes_before
          from (
            select w.*
            from (
        {rows}) w
            {order of w}
            limit :most) l) m
        where (m.bytes_before < :bytes) is not false
        {order of m}
        """
        .replace("{columns}", MonitorSql.columns(query.values()))
        .replace("{bytes}", bytes())
        .replace("{rows}", rows("m.*", "", query.statuses()))
        .replace("{order of l}", order("l"))
        .replace("{order of w}", order("w"))
        .replace("{order of m}", order("m"));
  }

  /** What a row takes, as far as it may be much. */
  private String bytes() {
    StringBuilder bytes = new StringBuilder("octet_length(array_to_string(l.waits_for, ''))");
    List<String> columns =
        new ArrayList<>(List.of("custom_status::text", "last_error", "error_stack"));
    query.values().forEach(value -> columns.add(CheckWrites.stored(value) + "::text"));
    columns.forEach(
        column -> bytes.append(" + coalesce(octet_length(l.").append(column).append("), 0)"));
    return bytes.toString();
  }

  /** {@return how many are on a page, or deleted, at most} */
  int limit() {
    return query.limit();
  }

  /** {@return what deletes instances that have ended, and counts them} */
  String purge() {
    return "with found as materialized (\n"
        + rows("m.application, m.id, m.created_at", "for update skip locked", ended())
        + """
        ),
        gone as (
          delete from {monitors} d
          using (select f.id from found f limit :most) f
          where d.application = :application and d.id = f.id
          returning d.id),
        events as (
          delete from {monitor_events} e
          using gone g
          where e.application = :application and e.monitor_id = g.id)
        select count(*) from gone
        """;
  }

  /** Of several statuses each is walked by itself, as far as a page goes. */
  private String rows(String columns, String locking, Set<MonitorStatus> statuses) {
    if (statuses.isEmpty() || byId(query)) {
      String wanted = statuses.isEmpty() ? "" : "\n  and m.status = any (:statuses::text[])";
      return walk(columns, wanted, locking);
    }
    return "select w.*\nfrom unnest(:statuses::text[]) as s (status)\ncross join lateral (\n"
        + walk(columns, "\n  and m.status = s.status", locking)
        + ") w\n";
  }

  private String walk(String columns, String more, String locking) {
    StringBuilder text = new StringBuilder("select ").append(columns);
    text.append("\nfrom {monitors} m\nwhere m.application = :application").append(more);
    query.type().ifPresent(type -> text.append("\n  and m.type = :type"));
    query.parent().ifPresent(parent -> text.append("\n  and m.parent = :parent"));
    query
        .idPrefix()
        .ifPresent(
            prefix ->
                text.append("\n  and m.id >= :prefix and starts_with(m.id, :prefix)")
                    .append(successor(prefix) == null ? "" : " and m.id < :prefix_end"));
    query
        .createdFrom()
        .ifPresent(from -> text.append("\n  and m.created_at >= :created_from::timestamptz"));
    query
        .createdBefore()
        .ifPresent(to -> text.append("\n  and m.created_at < :created_before::timestamptz"));
    if (after != null) {
      text.append(
          after.created() == null
              ? "\n  and m.id > :after_id"
              : "\n  and (m.created_at, m.id) > (:after_created::timestamptz, :after_id)");
    }
    text.append("\n").append(order("m")).append("\nlimit :most\n").append(locking);
    return text.append("\n").toString();
  }

  private String order(String of) {
    return byId(query) ? "order by " + of + ".id" : "order by " + of + ".created_at, " + of + ".id";
  }

  /** {@return the values of the parameters} */
  Map<String, Object> values() {
    Map<String, Object> values = values(query.statuses(), query.limit() + 1);
    values.put("bytes", MOST_BYTES);
    return values;
  }

  /** {@return the values of the parameters of a purge of at most so many} */
  Map<String, Object> valuesOfPurge(int most) {
    return values(ended(), most);
  }

  private Set<MonitorStatus> ended() {
    Set<MonitorStatus> ended = EnumSet.noneOf(MonitorStatus.class);
    for (MonitorStatus status : MonitorStatus.values()) {
      if (status.isFinished()
          && (query.statuses().isEmpty() || query.statuses().contains(status))) {
        ended.add(status);
      }
    }
    return ended;
  }

  private Map<String, Object> values(Set<MonitorStatus> statuses, int most) {
    Map<String, Object> values = new HashMap<>();
    values.put("statuses", statuses.stream().map(CheckWrites::stored).toArray(String[]::new));
    values.put("most", (long) most);
    query.type().ifPresent(type -> values.put("type", type));
    query.parent().ifPresent(parent -> values.put("parent", parent));
    query
        .idPrefix()
        .ifPresent(
            prefix -> {
              values.put("prefix", prefix);
              String end = successor(prefix);
              values.put("prefix_end", end == null ? "" : end);
            });
    query.createdFrom().ifPresent(from -> values.put("created_from", from.toString()));
    query.createdBefore().ifPresent(to -> values.put("created_before", to.toString()));
    if (after != null) {
      values.put("after_created", after.created() == null ? "" : after.created().toString());
      values.put("after_id", after.id());
    }
    return values;
  }

  /** Returns the least text behind all that begin so, by bytes in UTF-8; null if there is none. */
  private static @Nullable String successor(String prefix) {
    int end = prefix.length();
    while (end > 0) {
      int last = prefix.codePointBefore(end);
      end -= Character.charCount(last);
      if (last < LAST_CODE_POINT) {
        int next = last + 1 == Character.MIN_SURROGATE ? Character.MAX_SURROGATE + 1 : last + 1;
        return prefix.substring(0, end) + Character.toString(next);
      }
    }
    return null;
  }
}
