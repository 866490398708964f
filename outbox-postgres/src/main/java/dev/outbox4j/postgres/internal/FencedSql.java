package dev.outbox4j.postgres.internal;

import dev.outbox4j.postgres.OutboxTable;

/**
 * The texts of the writes on leased rows. Each has two forms: one that waits a moment for locked
 * rows, and one that passes them by and tells which they are. Parameters of all: queue, ids,
 * tokens.
 */
public final class FencedSql {
  /**
   * The fence, of a row {@code o} and what is asked, {@code a}. One probe of the primary key a row,
   * whatever the planner believes.
   */
  private static final String HELD =
      "o.queue = :queue and o.id = any (array[a.id]) and o.lease_token = a.token"
          + " and o.lease_until is not null";

  /** Tells the queue's sleepers, unless all that was done is due when they are awake. */
  private static final String NOTIFY =
      """
        and (
          select count(pg_notify(:channel, :queue))
          where exists (
            select from {sleepers} s
            where s.queue = :queue and s.wake_at > (
              select greatest(min(done.available_at), now()) from done having count(*) > 0))) >= 0
      """;

  private static final String NO_TWINS =
      """
      (
          select cast(min('{too_many}' || twin.id) as int)
          from (select done.id from done group by done.id having count(*) > 1) twin) is null
      """
          .strip()
          .replace("{too_many}", Refusal.TOO_MANY.words());

  private static final String WAITING =
      """
      with done as (
        {effect} unnest({arrays}) as a ({columns})
        where {held}
        returning {returning}){more}
      select done.id, false from done
      where {checked}
      """;

  private static final String PASSING_BY =
      """
      with asked as materialized (
        select * from unnest({arrays}) as a ({columns})),
      unlocked as materialized (
        select o.ctid as place, a.*
        from asked a cross join {outbox} o
        where {held}
        for {lock} of o skip locked),
      done as (
        {effect} unlocked a
        where o.queue = :queue and o.ctid = a.place and (o.id = a.id) is true
        returning {returning}){more}
      select done.id, false from done
      where {checked}
      union all
      select o.id, true
      from asked a cross join {outbox} o
      where {held} and o.id not in (select done.id from done)
      """;

  private final Effect effect;

  /**
   * What a write does.
   *
   * @param statement up to its {@code using} or {@code from}, on {@code o} and {@code a}
   * @param arrays the parameters that hold a value for each row, beside ids and tokens, with types
   * @param columns their names in {@code a}
   * @param returning what is known of a changed row, in {@code done}; its id first
   * @param more common tables that follow {@code done}
   * @param conditions what must hold, too, each with {@code and} before it
   */
  public record Effect(
      String statement,
      String arrays,
      String columns,
      String returning,
      String more,
      String conditions) {
    static Effect of(String statement) {
      return new Effect(statement, "", "", "o.id", "", "");
    }

    static Effect notifying(String statement, String arrays, String columns) {
      return new Effect(statement, arrays, columns, "o.id, o.available_at", "", NOTIFY);
    }
  }

  static final Effect ACK = Effect.of("delete from {outbox} o using");

  /** Who retries is awake, but may be busy or gone when the rows are due, so sleepers are told. */
  static final Effect RETRY =
      Effect.notifying(
          """
          update {outbox} o
            set available_at = now() + make_interval(secs => a.delay), lease_until = null,
              leased_at = null, leased_by = null, attempts_count = o.attempts_count + a.runs,
              deliveries_count = greatest(o.deliveries_count - a.given_back, 0),
              first_attempt_at = case when a.runs = 0 then o.first_attempt_at
                else coalesce(o.first_attempt_at, now()) end,
              last_attempt_at = case when a.runs = 0 then o.last_attempt_at else now() end,
              last_error = a.error
            from\
          """,
          ", :delays::float8[], :errors::text[], :runs::int[], :given_back::int[]",
          ", delay, error, runs, given_back");

  static final Effect RESCHEDULE =
      Effect.notifying(
          """
          update {outbox} o
            set available_at = now() + make_interval(secs => a.delay), lease_until = null,
              leased_at = null, leased_by = null, deliveries_count = 0, attempts_count = 0,
              first_attempt_at = null, last_attempt_at = null, last_error = null
            from\
          """,
          ", :delays::float8[]",
          ", delay");

  static final Effect RENEW =
      Effect.of(
          """
          update {outbox} o
            set lease_until = now() + make_interval(secs => :lease)
            from\
          """);

  static final Effect RELEASE =
      Effect.notifying(
          """
          update {outbox} o
            set lease_until = null, leased_at = null, leased_by = null,
              deliveries_count = greatest(o.deliveries_count - 1, 0)
            from\
          """,
          "",
          "");

  /**
   * Names an effect.
   *
   * @param effect what to write
   */
  public FencedSql(Effect effect) {
    this.effect = effect;
  }

  /**
   * Renders the form that waits for locked rows, up to the lock timeout.
   *
   * @param table the outbox
   * @return the text
   */
  public Sql waiting(OutboxTable table) {
    return render(WAITING, table);
  }

  /**
   * Renders the form that passes locked rows by and tells which they are.
   *
   * @param table the outbox
   * @return the text
   */
  public Sql passingBy(OutboxTable table) {
    return render(PASSING_BY, table);
  }

  /**
   * Renders the form that waits for locked rows, to be sent without the preamble of the store.
   *
   * @param table the outbox
   * @return the text
   */
  Sql alone(OutboxTable table) {
    return Sql.of(text(WAITING), table);
  }

  private Sql render(String form, OutboxTable table) {
    return Preamble.before(text(form), table);
  }

  private String text(String form) {
    String text =
        form.replace("{effect}", effect.statement())
            .replace("{lock}", effect.statement().startsWith("delete") ? "update" : "no key update")
            .replace("{arrays}", ":ids::bigint[], :tokens::bigint[]" + effect.arrays())
            .replace("{columns}", "id, token" + effect.columns())
            .replace("{returning}", effect.returning())
            .replace("{more}", effect.more())
            .replace("{checked}", NO_TWINS + "\n" + effect.conditions())
            .replace("{held}", HELD);
    return text.replaceAll("\n\n+", "\n");
  }
}
