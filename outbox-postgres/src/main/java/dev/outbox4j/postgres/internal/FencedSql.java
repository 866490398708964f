package dev.outbox4j.postgres.internal;

import dev.outbox4j.internal.state.Settlement;
import dev.outbox4j.postgres.OutboxTable;
import org.jspecify.annotations.Nullable;

/**
 * The texts of the writes on leased rows. Each has two forms: one that waits a moment for locked
 * rows, and one that passes them by and tells which they are. Parameters of all: queue, ids,
 * tokens. A write that is the same for all rows has a third form, for rows that have one token in
 * common; it waits like the first, and costs the server a third of it.
 */
public final class FencedSql {
  /** The fence, of a row {@code o} and what is asked, {@code a}. */
  private static final String FENCE = "o.lease_token = a.token and o.lease_until is not null";

  /** The row holds what was claimed, and not what was published in its place since. */
  public static final String AS_CLAIMED = FENCE + " and o.next_id is null";

  private static final String REPLACED = FENCE + " and o.next_id is not null";

  /** One probe of the primary key a row, whatever the planner believes. */
  private static final String PROBED = "o.queue = :queue and o.id = any (array[a.id]) and ";

  /** That of a row whose bucket is held: nobody holds the row itself. */
  private static final String NO_LEASE =
      "o.lease_token = a.token and (o.lease_until is null or o.lease_until < now())";

  /**
   * The fence where the bucket is held and not the row. Whoever takes a bucket waits for this lock,
   * or finds the bucket locked and takes it later. The buckets are one array, computed once:
   * joined, they were gone through for each row.
   */
  private static final String OF_A_HELD_BUCKET =
      PROBED
          + NO_LEASE
          + " and a.bucket = any ((select array_agg({fence}.bucket) from {fence})::bigint[])";

  /** Buckets that have the owner and the epoch. */
  private static final String BUCKETS =
      """
      select b.bucket
        from unnest(:held_buckets::bigint[], :held_epochs::bigint[]) as h (bucket, epoch)
        cross join {buckets} b
        where b.queue = :queue and b.bucket = any (array[h.bucket]) and b.epoch = h.epoch
          and b.owner is not null\
      """;

  private static final String HELD_BUCKETS =
      """
      with held as materialized (
        %s
        for share of b),
      """
          .formatted(BUCKETS);

  /** As above, but for buckets that somebody has locked: what is in them is told as locked. */
  private static final String LOCKABLE_BUCKETS =
      """
      with mine as materialized (
        %1$s),
      held as materialized (
        %1$s
        for share of b skip locked),
      """
          .formatted(BUCKETS);

  /**
   * Tells the queue's sleepers, unless all that was done is due when they are awake. A condition on
   * {@code done}, with {@code and} before it.
   */
  public static final String NOTIFY =
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

  /**
   * The queue, twice, since an alternative is no condition of an index: the primary key alone can
   * find the rows, in the order of their ids. The planner sees by it which partition is meant.
   */
  private static final String QUEUE =
      "(o.queue = :queue or (o.queue < :queue and :queue = o.queue))";

  private static final String WAITING_FOR_ONE_TOKEN =
      """
      with done as (
        {effect} (select :token::bigint as token) a
        where {queue} and o.id = any (:ids::bigint[]) and {held}
        returning {returning}){more}
      select done.id, false from done
      where {checked}
      """
          .replace("{queue}", QUEUE);

  /** All of the buckets, or nothing is written: which rows are of which is not asked. */
  private static final String OF_HELD_BUCKETS =
      NO_LEASE + " and (select count(*) from held) = cardinality(:held_buckets::bigint[])";

  private static final String PASSING_BY =
      """
      with asked as materialized (
        select * from unnest({arrays}) as a ({columns})),
      unlocked as materialized (
        select o.ctid as place, a.*
        from asked a cross join {outbox} o
        where {held}
        for {lock} of o skip locked),{passed_by}
      done as (
        {effect} unlocked a
        where o.queue = :queue and o.ctid = a.place and (o.id = a.id) is true{in_turn}
        returning {returning}){more}
      select done.id, false from done
      where {checked}
      union all
      select o.id, true
      from asked a cross join {outbox} o
      where {named} and o.id not in (select done.id from done)
      """;

  /** What is set of a row that is handled as if it were new. */
  public static final String MADE_NEW =
      """
      lease_until = null, leased_at = null, leased_by = null, deliveries_count = 0,
          attempts_count = 0, first_attempt_at = null, last_attempt_at = null, last_error = null\
      """;

  /** Keys of which a row is locked: the others are as if they were locked as well. */
  private static final String PASSED_BY =
      """

      passed_by as materialized (
        select distinct o.ordering_key as key
        from asked a cross join {outbox} o
        where {named} and o.ordering_key is not null
          and not exists (select from unlocked u where u.id = a.id and u.place = o.ctid)),\
      """;

  private static final String IN_TURN =
      """

          and not exists (select from passed_by p where p.key = o.ordering_key)\
      """;

  private final Effect effect;
  private final boolean ofBuckets;

  /**
   * What a write does.
   *
   * @param statement up to its {@code using} or {@code from}, on {@code o} and {@code a}
   * @param arrays the parameters that hold a value for each row, beside ids and tokens, with types
   * @param columns their names in {@code a}
   * @param returning what is known of a changed row, in {@code done}; its id first
   * @param more common tables that follow {@code done}
   * @param conditions what must hold, too, each with {@code and} before it
   *     <p>{@code {deliveries}} stands for the deliveries of a row, this one included, and {@code
   *     {moved}} for what is set of one that is to be handled again.
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

    /**
     * Returns the same, and what is written with it.
     *
     * @param following the writes
     * @return the effect
     */
    public Effect followedBy(Following following) {
      return new Effect(
          statement,
          arrays,
          columns,
          returning + following.returning(),
          more + following.tables(),
          conditions + following.conditions());
    }

    private boolean acks() {
      return statement.equals(ACK.statement) && arrays.isEmpty();
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
            set available_at = now() + make_interval(secs => a.delay), {moved}lease_until = null,
              leased_at = null, leased_by = null, attempts_count = o.attempts_count + a.runs,
              deliveries_count = greatest({deliveries} - a.given_back, 0),
              first_attempt_at = case when a.runs = 0 then o.first_attempt_at
                else coalesce(o.first_attempt_at, now()) end,
              last_attempt_at = case when a.runs = 0 then o.last_attempt_at else now() end,
              last_error = case when a.error is distinct from '{left}' then a.error
                when starts_with(o.last_error, '{left_since}') and o.last_error
                  = left(o.last_error, length('{left_since}2000-01-01T00:00:00Z'))
                    || '{at_delivery}' || greatest({deliveries} - a.given_back, 0)
                  then o.last_error
                else '{left_since}' || to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
                  || '{at_delivery}' || greatest({deliveries} - a.given_back, 0) end
            from\
          """
              .replace("{left}", Settlement.Leave.ERROR)
              .replace("{left_since}", Settlement.Leave.SINCE)
              .replace("{at_delivery}", Settlement.Leave.AT_DELIVERY),
          ", :delays::float8[], :errors::text[], :runs::int[], :given_back::int[]",
          ", delay, error, runs, given_back");

  static final Effect RESCHEDULE =
      Effect.notifying(
          """
          update {outbox} o
            set available_at = now() + make_interval(secs => a.delay), {moved}{made_new}
            from\
          """
              .replace("{made_new}", MADE_NEW),
          ", :delays::float8[]",
          ", delay");

  static final Effect RENEW =
      Effect.of(
          """
          update {outbox} o
            set lease_until = now() + make_interval(secs => :lease)
            from\
          """);

  /**
   * Ends the lease of a message in whose place another was published, which is due from now on. The
   * message that was handled is told by its own id.
   */
  static final Effect HAND_OVER =
      new Effect(
          """
          update {outbox} o
            set id = o.next_id, next_id = null,
              available_at = greatest(o.available_at, clock_timestamp()), lease_until = null,
              leased_at = null, leased_by = null
            from\
          """,
          "",
          "",
          "a.id, o.available_at",
          "",
          NOTIFY);

  /** Of rows whose bucket is held. */
  static final Effect COUNT =
      Effect.of(
          """
          update {outbox} o
            set deliveries_count = o.deliveries_count + 1
            from\
          """);

  static final Effect RELEASE =
      Effect.notifying(
          """
          update {outbox} o
            set lease_until = null, leased_at = null, leased_by = null,
              deliveries_count = greatest({deliveries} - 1, 0)
            from\
          """,
          "",
          "");

  /**
   * Names an effect on rows that are leased one by one.
   *
   * @param effect what to write
   */
  public FencedSql(Effect effect) {
    this(effect, false);
  }

  private FencedSql(Effect effect, boolean ofBuckets) {
    this.effect = effect;
    this.ofBuckets = ofBuckets;
  }

  /**
   * Returns the same on rows whose buckets are held. It has parameters of its own, see {@link
   * BucketFence}.
   *
   * @return the texts
   */
  FencedSql ofBuckets() {
    return new FencedSql(effect, true);
  }

  /**
   * Renders the form that waits for locked rows, up to the lock timeout.
   *
   * @param table the outbox
   * @return the text
   */
  public Sql waiting(OutboxTable table) {
    return Preamble.before(text(WAITING), table);
  }

  /**
   * Renders the form that passes locked rows by and tells which they are.
   *
   * @param table the outbox
   * @return the text
   */
  public Sql passingBy(OutboxTable table) {
    return Preamble.before(text(PASSING_BY), table);
  }

  /**
   * Renders the form that waits for locked rows, to be sent without the preamble of the store, in a
   * transaction that may have begun long before: its now() is over. The owner of the lease is a
   * parameter, too.
   *
   * @param before a statement to be sent with it, or nothing
   * @param schema the outbox's; null if it is found on the search path
   * @param outbox its table
   * @return the text
   */
  Sql alone(String before, @Nullable String schema, String outbox) {
    return Sql.of(
        before
            + text(WAITING)
                .replace("available_at = now()", "available_at = clock_timestamp()")
                .replace(FENCE, FENCE + " and o.leased_by = :owner")
                .replace("b.owner is not null", "b.owner = :owner"),
        schema,
        outbox);
  }

  /** Tells whether the same is written to all rows, so that there is a form for one token. */
  boolean isUniform() {
    boolean counts =
        ofBuckets && (effect.statement() + effect.returning()).contains("{deliveries}");
    // one that hands over tells the ids of before
    return effect.arrays().isEmpty() && !counts && !effect.equals(HAND_OVER);
  }

  /**
   * Renders the form that waits for locked rows, for rows that have one token in common: its
   * parameter is {@code token}, not tokens.
   *
   * @param table the outbox
   * @return the text
   */
  public Sql waitingForOneToken(OutboxTable table) {
    if (!isUniform()) {
      throw new IllegalStateException("what is written differs by row");
    }
    return Preamble.before(text(WAITING_FOR_ONE_TOKEN), table);
  }

  private String text(String form) {
    boolean inTurn = ofBuckets && effect.acks();
    String text =
        form.replace("{passed_by}", inTurn ? PASSED_BY : "")
            .replace("{in_turn}", inTurn ? IN_TURN : "")
            .replace("{effect}", effect.statement())
            .replace("{lock}", writesKey() ? "update" : "no key update")
            .replace("{arrays}", arrays())
            .replace("{columns}", columns())
            .replace("{returning}", effect.returning())
            .replace("{more}", effect.more())
            .replace("{checked}", NO_TWINS + "\n" + effect.conditions())
            .replace("{held}", held(form))
            .replace("{named}", named())
            .replace("{moved}", ofBuckets ? "lease_token = o.lease_token + 1, " : "")
            .replace("{token}", ofBuckets ? "o.lease_token + 1" : "o.lease_token")
            .replace(
                "{deliveries}",
                ofBuckets ? "(o.deliveries_count + a.uncounted)" : "o.deliveries_count");
    if (ofBuckets) {
      String buckets = form.equals(PASSING_BY) ? LOCKABLE_BUCKETS : HELD_BUCKETS;
      text = buckets + text.replaceFirst("^with ", "");
    }
    return text.replaceAll("\n\n+", "\n");
  }

  private String held(String form) {
    if (form.equals(WAITING_FOR_ONE_TOKEN)) {
      return ofBuckets ? OF_HELD_BUCKETS : ofRow();
    }
    return ofBuckets ? OF_A_HELD_BUCKET.replace("{fence}", "held") : PROBED + ofRow();
  }

  private String named() {
    return ofBuckets ? OF_A_HELD_BUCKET.replace("{fence}", "mine") : PROBED + ofRow();
  }

  private boolean writesKey() {
    return effect.statement().startsWith("delete") || effect.equals(HAND_OVER);
  }

  private String ofRow() {
    if (effect.equals(RENEW)) { // it is for whoever handles the row
      return FENCE;
    }
    return effect.equals(HAND_OVER) ? REPLACED : AS_CLAIMED;
  }

  private String arrays() {
    String ofAll = ":ids::bigint[], :tokens::bigint[]";
    return ofAll + (ofBuckets ? ", :buckets::bigint[], :uncounted::int[]" : "") + effect.arrays();
  }

  private String columns() {
    return "id, token" + (ofBuckets ? ", bucket, uncounted" : "") + effect.columns();
  }
}
