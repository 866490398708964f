package dev.outbox4j.examples.chaos;

import java.sql.SQLException;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * What really happened, written where no fault of the framework can reach: the publisher's domain
 * rows, the handlers' effects, and by the triggers of {@link LedgerSchema} every deletion of an
 * outbox row, every counted failure, every write and claim against a lease that was another's, and
 * every lease of a wrong length.
 */
final class Ledger {
  /** Kinds of messages, by what their handler does, and how many in ten thousand there are. */
  enum Kind {
    /** Fails twice. */
    FLAKY(200),
    /** Always fails: belongs in the dead letters. */
    POISON(100),
    /** Throws an Error once. */
    ERROR(50),
    /** Takes a while. */
    SLOW(100),
    /** Hangs once, until it is interrupted. */
    HANGING(1),
    /** Runs past its timeout once and ignores the interrupt. */
    STUBBORN(1),
    /** Runs three leases long. */
    LONG(2),
    /** Carries a large payload. */
    BIG(20),
    /** Is due later. */
    DELAYED(100),
    /** Has its effect in the transaction of its ack. */
    TRANSACTIONAL(150),
    /** As that, and publishes to another queue in it, until a chain has gone through three. */
    CHAINED(50),
    /** Is of use for a few seconds only, and is a dead letter after that. */
    EXPIRING(100),
    /** Is handled with others of its kind, in calls of which some fail. */
    BATCHED(200),
    /** Comes rarely, in a queue of its own whose subscribers sleep. */
    QUIET(0),
    NORMAL(8_926);

    private final int share;

    Kind(int share) {
      this.share = share;
    }

    static Kind drawn(Random random) {
      int lot = random.nextInt(10_000);
      for (Kind kind : values()) {
        lot -= kind.share;
        if (lot < 0) {
          return kind;
        }
      }
      return NORMAL;
    }
  }

  /** Those of now, and those of dead-letter tables that were dropped. */
  private static final String ALL_DEAD_LETTERS =
      "(select original_id, failure_reason from outbox_dlq"
          + " union all select original_id, failure_reason from dead_letters_kept)";

  private static final String FIRST_EFFECTS =
      """
      with firsts as (
        select c.key, c.outbox_id, c.due_at, min(h.nth) as nth
        from committed c join handled h using (no)
        where h.in_order and c.ordered and c.key is not null
        group by c.key, c.outbox_id, c.due_at)
      """;

  private static final String NOT_BY_ANOTHER_CLOCK =
      "not exists (select from episodes e where e.fault = ? and e.began <= h.at and (e.ended >= h.at"
          + " or (c.due_at > e.began and c.due_at < e.ended + make_interval(secs => ?))))";

  /** Runs of the limited queue that held their lease when they had their effect: those count. */
  private static final String AT_ONCE =
      """
      with runs as (
        select h.began, h.at from handled h join committed c using (no)
        where c.queue = '%s' and h.row_token = h.token and h.lease_until > h.at
          and not exists (
            select from faults f where f.fault = any(?::text[])
              and (f.owner is null or f.owner = h.owner)
              and f.hit_from <= h.at and f.hit_to >= h.began - make_interval(secs => ?))
      ), steps as (
        select began as at, 1 as step from runs union all select at, -1 from runs
      )
      select coalesce(max(running), 0)
      from (select sum(step) over (order by at, step) as running from steps) x"""
          .formatted(Subscriber.LIMITED_QUEUE);

  /** Within it a pause must be heeded by all. */
  private static final Duration HEEDED = Duration.ofSeconds(1);

  /** Well above what a notification takes on a busy machine, well below the wait for a poll. */
  static final Duration LATE = Duration.ofMillis(1_500);

  private final DataSource direct;

  /** Needs a source that waits for long statements. */
  Ledger(DataSource direct) {
    this.direct = direct;
  }

  /**
   * Notes a fault that is over: who it hit, unless it was everybody, and from when to when. It
   * explains duplicates of that time.
   */
  void hit(String fault, @Nullable String owner, String from, String to) throws SQLException {
    Database.update(
        direct,
        "insert into faults values (?, ?, ?::timestamptz, ?::timestamptz)",
        fault,
        owner,
        from,
        to);
  }

  long committed() throws SQLException {
    return Database.number(direct, "select count(*) from committed");
  }

  /** How many were committed of each kind. */
  Map<String, Long> kinds() throws SQLException {
    Map<String, Long> kinds = new TreeMap<>();
    for (String line :
        Database.texts(
            direct, "select kind || ' ' || count(*) from committed group by kind order by kind")) {
      int gap = line.indexOf(' ');
      kinds.put(
          line.substring(0, gap).toLowerCase(Locale.ROOT), Long.valueOf(line.substring(gap + 1)));
    }
    return kinds;
  }

  long deadLetters() throws SQLException {
    return Database.number(direct, "select count(*) from " + ALL_DEAD_LETTERS + " d");
  }

  /** Rows that are neither acked nor dead-lettered. */
  long unsettled() throws SQLException {
    return Database.number(direct, "select count(*) from outbox");
  }

  long lost() throws SQLException {
    return Database.number(
        direct,
        """
        select count(*) from committed c
        where not exists (select from handled h where h.no = c.no)
          and not exists (select from %s d where d.original_id = c.outbox_id)"""
            .formatted(ALL_DEAD_LETTERS));
  }

  long handledAfterRollback() throws SQLException {
    return Database.number(
        direct,
        "select count(distinct h.no) from handled h"
            + " where not exists (select from committed c where c.no = h.no)");
  }

  /**
   * Writes by others than the owner of the row's lease, or without one: deletions, retries,
   * renewals, releases, and claims of rows whose lease was alive. And deletions of rows that are no
   * dead letters and of which no handler had ended well under the token they had.
   */
  long staleAcks() throws SQLException {
    return Database.number(
            direct,
            """
            select (select count(*) from deleted where stale)
              + (select count(*) from stale) + (select count(*) from stolen)""")
        + Database.number(
            direct,
            """
            select count(*) from deleted d
            where not d.stale
              and not exists (
                select from handled h
                where h.outbox_id = d.outbox_id and h.token = d.token and h.at <= d.at)
              and not exists (select from %s q where q.original_id = d.outbox_id)"""
                .formatted(ALL_DEAD_LETTERS));
  }

  long poisonNotDeadLettered() throws SQLException {
    return Database.number(
        direct,
        """
        select count(*) from committed c where c.kind = 'POISON'
          and not exists (
            select from %s d
            where d.original_id = c.outbox_id and d.failure_reason = 'retry_terminal')"""
            .formatted(ALL_DEAD_LETTERS));
  }

  long healthyDeadLettered() throws SQLException {
    return Database.number(
        direct,
        """
        select count(*) from %s d join committed c on c.outbox_id = d.original_id
        where c.kind <> 'POISON' and not (c.kind = 'EXPIRING' and d.failure_reason = 'expired')"""
            .formatted(ALL_DEAD_LETTERS));
  }

  /**
   * Second effects of messages that have theirs in the transaction of their ack: never, whatever.
   */
  long repeatedTransactions() throws SQLException {
    return Database.number(
        direct,
        "select count(*) - count(distinct h.no) from handled h join committed c using (no)"
            + " where c.kind in ('TRANSACTIONAL', 'CHAINED')");
  }

  /** By how much the counters differ from the number of messages that count one up. */
  long miscounted() throws SQLException {
    return Database.number(
        direct,
        "select (select sum(counted) from counters)::bigint - count(*) from committed"
            + " where kind in ('TRANSACTIONAL', 'CHAINED')");
  }

  /** Chains that have come to their last queue. */
  long chains() throws SQLException {
    return Database.number(
        direct,
        "select count(*) from committed where kind = 'CHAINED' and queue = ?",
        Subscriber.CHAIN.get(Subscriber.CHAIN.size() - 1));
  }

  /** Links of chains, the last ones aside, that are not followed by one other. */
  long brokenChains() throws SQLException {
    return Database.number(
        direct,
        "select count(*) from committed c where c.kind = 'CHAINED' and c.queue <> ?"
            + " and (select count(*) from committed n where n.origin = c.no) <> 1",
        Subscriber.CHAIN.get(Subscriber.CHAIN.size() - 1));
  }

  /** Effects of messages whose time was over when their handler began. */
  long handledAfterExpiry(Duration slack) throws SQLException {
    return Database.number(
        direct,
        "select count(*) from handled h join committed c using (no) where c.kind = 'EXPIRING'"
            + " and h.began > c.due_at + make_interval(secs => ?) and "
            + NOT_BY_ANOTHER_CLOCK,
        Publisher.EXPIRES_IN.plus(slack).toMillis() / 1e3 + 1,
        Fault.JUMP_CLOCK.label(),
        ClockJump.SECONDS);
  }

  /** Messages that have more than one dead letter, though nobody redrives any here. */
  long deadLetteredTwice() throws SQLException {
    return Database.number(
        direct,
        """
        select count(*) from (
          select from %s d group by original_id having count(*) > 1) x"""
            .formatted(ALL_DEAD_LETTERS));
  }

  /**
   * By the time as it is, so those are left out for which the server's clock was another: handled
   * meanwhile, or published meanwhile and so due by that clock.
   */
  long early() throws SQLException {
    return Database.number(
        direct,
        "select count(*) from handled h join committed c using (no)"
            + " where h.at < c.due_at - interval '1 second' and "
            + NOT_BY_ANOTHER_CLOCK,
        Fault.JUMP_CLOCK.label(),
        ClockJump.SECONDS);
  }

  /** Leases, and delays of retries, that end more than a second from when they should. */
  long misdated(Duration retryDelay) throws SQLException {
    return Database.number(direct, "select count(*) from misdated")
        + Database.number(
            direct,
            "select count(*) from retried"
                + " where not put_off and abs(extract(epoch from delay) - ?) > 1",
            retryDelay.toMillis() / 1e3);
  }

  /** How many effects a second there were between two instants. */
  double handledPerSecond(String from, String to) throws SQLException {
    return Database.number(
            direct,
            "select (1000 * count(*) / extract(epoch from ?::timestamptz - ?::timestamptz))::bigint"
                + " from handled where at >= ?::timestamptz and at < ?::timestamptz",
            to,
            from,
            from,
            to)
        / 1e3;
  }

  /** Notes an episode: what is done to no message is done to the rest all the same. */
  void episode(String fault, String from, String to) throws SQLException {
    Database.update(
        direct, "insert into episodes values (?, ?::timestamptz, ?::timestamptz)", fault, from, to);
  }

  /** How many quiet messages were committed and handled between two instants. */
  long quietMessages(String from, String to) throws SQLException {
    return Database.number(
        direct,
        "select count(*) from committed c join handled h using (no)"
            + " where c.kind = 'QUIET' and c.due_at >= ?::timestamptz and h.at <= ?::timestamptz",
        from,
        to);
  }

  /** How many quiet messages that were committed between two instants were handled so late. */
  long quietMessagesSlowerThan(Duration time, String from, String to) throws SQLException {
    return Database.number(
        direct,
        "select count(*) from committed c join handled h using (no)"
            + " where c.kind = 'QUIET' and c.due_at >= ?::timestamptz and c.due_at < ?::timestamptz"
            + " and h.at > c.due_at + make_interval(secs => ?)",
        from,
        to,
        time.toMillis() / 1e3);
  }

  /** How many of the messages that came due between two instants were handled until the second. */
  double shareHandled(String from, String to) throws SQLException {
    return Database.number(
            direct,
            "select 1000 * count(h.no) / greatest(count(*), 1) from committed c"
                + " left join handled h on h.no = c.no and h.at <= ?::timestamptz"
                + " where c.due_at >= ?::timestamptz and c.due_at < ?::timestamptz"
                + " and c.kind not in ('POISON', 'HANGING', 'STUBBORN', 'LONG', 'EXPIRING')"
                + " and c.queue <> ?",
            to,
            from,
            to,
            Subscriber.PAUSED_QUEUE)
        / 1e3;
  }

  /**
   * Quiet messages that were handled late though no fault was done between their commit and then:
   * not by the notification, but by a poll.
   *
   * @param late from when on
   */
  long quietMessagesLate(Duration late) throws SQLException {
    return Database.number(
        direct,
        """
        select count(*) from committed c join handled h using (no)
        where c.kind = 'QUIET' and h.at > c.due_at + make_interval(secs => ?)
          and not exists (
            select from episodes e where e.fault <> 'calm' and e.began <= h.at and c.due_at <= e.ended
              + case when e.fault = 'kill-subscriber' then interval '25 s' else '0' end)""",
        late.toMillis() / 1e3);
  }

  /** Messages of the ordered queue that have an effect. */
  long handledInOrder() throws SQLException {
    return Database.number(direct, "select count(distinct no) from handled where in_order");
  }

  /**
   * Messages that a later one of their key has overtaken: whose first effect came before theirs.
   * Each key is one publisher's, which writes one transaction after the other to it. What was
   * published while the server's clock was ahead looks delayed when it is set back.
   */
  long overtaken() throws SQLException {
    return Database.number(
        direct,
        FIRST_EFFECTS
            + """
            , known as (
              select f.*, exists (
                select from episodes e
                where e.fault = ? and f.due_at between e.began and e.ended) as ahead
              from firsts f)
            select count(*) from (
              select nth < max(case when not ahead then nth end)
                over (partition by key order by outbox_id) as overtaken
              from known) x
            where overtaken""",
        Fault.JUMP_CLOCK.label());
  }

  /**
   * Messages that were acked by an earlier transaction than one that had its effect before them, of
   * the same key: had all been killed in between, that one would have come again, and they not.
   */
  long acksOutOfTurn() throws SQLException {
    return Database.number(
        direct,
        FIRST_EFFECTS
            + """
            , acked as (select outbox_id, min(nth) over (partition by act) as nth from deleted)
            select count(*) from (
              select a.nth < max(a.nth) over (partition by f.key order by f.nth
                rows between unbounded preceding and 1 preceding) as early
              from firsts f join acked a using (outbox_id)) x
            where early""");
  }

  /**
   * Pairs of runs of a key that went on at the same time. In one process two messages never may,
   * whatever is done to it. Else an owner that hangs may go on beside the next one: if a fault that
   * leases may run out by had hit either of them. So may a handler beside the next run of its own
   * message.
   */
  long besideOneOfTheirKey(Duration lease) throws SQLException {
    return Database.number(
        direct,
        """
        with runs as (
          select h.no, h.nth, h.owner, h.began, h.at, c.key,
            max(h.at) over (partition by c.key order by h.nth
              rows between unbounded preceding and 1 preceding) as latest_before
          from handled h join committed c using (no)
          where h.in_order and c.key is not null
        ), pairs as (
          select a.owner, b.owner as other, a.owner = b.owner and a.no <> b.no as of_one_process,
            least(a.began, b.began) as began, greatest(a.at, b.at) as at
          from runs b join runs a on a.key = b.key and a.nth < b.nth and a.at > b.began
          where b.began < b.latest_before
        )
        select count(*) from pairs p where not exists (
          select from faults f
          where f.fault = any (case when p.of_one_process then ?::text[] else ?::text[] end)
            and (f.owner is null or f.owner in (p.owner, p.other))
            and f.hit_from <= p.at and f.hit_to >= p.began - make_interval(secs => ?))""",
        "{" + Fault.JUMP_CLOCK.label() + "}", // by which times do not compare
        Fault.thatLeasesMayEndBy(),
        seconds(lease) * 2);
  }

  /** Second effects of messages of the ordered queue. */
  long repeatedInOrder() throws SQLException {
    return Database.number(
        direct, "select count(*) - count(distinct no) from handled where in_order");
  }

  /** Those for which no fault was done, and no failure was reported, since the first effect. */
  long repeatedInOrderUnexplained() throws SQLException {
    return Database.number(
        direct,
        """
        select count(*) from (
          select no, outbox_id, token, at, began, lead(at) over w as next_at
          from handled where in_order window w as (partition by no order by nth)) x
        where next_at is not null
          and not exists (
            select from faults f where f.hit_from <= x.next_at and f.hit_to >= x.began)""");
  }

  /** The same, by the faults that may be the reason. */
  RepeatsInOrder repeatsInOrder() throws SQLException {
    return RepeatsInOrder.of(direct, Fleet.SUBSCRIBERS, Subscriber.MOST_IN_ORDER);
  }

  /** Notes that a queue was paused at least between two instants. */
  void paused(String from, String to) throws SQLException {
    Database.update(direct, "insert into pauses values (?::timestamptz, ?::timestamptz)", from, to);
  }

  /** How many times the queue was paused. */
  long pauses() throws SQLException {
    return Database.number(direct, "select count(*) from pauses");
  }

  /**
   * Handlers that began in a pause, later than a second after its begin. If a fault was done then,
   * some may not have been able to ask: later than a second after all were well again.
   */
  long handledWhilePaused(Duration slack) throws SQLException {
    return Database.number(
        direct,
        """
        select count(distinct h.nth)
        from (
          select p.*, greatest(p.began, (
            select max(e.ended) from episodes e
            where e.fault <> 'calm' and e.began <= p.began + make_interval(secs => ?)
              and e.ended >= p.began)) + make_interval(secs => ?) as heeded
          from pauses p) p
        join handled h on h.began > p.heeded and h.began < p.ended
        join committed c using (no)
        where c.queue = ? and not exists (
          select from faults f
          where f.fault = ? and f.hit_from <= h.began and f.hit_to >= p.began)""",
        seconds(HEEDED),
        seconds(HEEDED.plus(slack)),
        Subscriber.PAUSED_QUEUE,
        Pulse.FAULT);
  }

  /** The most handlers of the limited queue that ran at once under their leases. */
  long mostAtOnce() throws SQLException {
    return Database.number(direct, AT_ONCE, "{}", 0.0);
  }

  /**
   * The most of those whose process was not hit, since their lease may have begun, by a fault that
   * leases may run out by: their slots were theirs all the time.
   */
  long mostAtOnceInTheirSlots(Duration lease) throws SQLException {
    return Database.number(direct, AT_ONCE, Fault.thatLeasesMayEndBy(), seconds(lease) * 2);
  }

  private static double seconds(Duration time) {
    return time.toMillis() / 1e3;
  }

  Duplicates duplicates() throws SQLException {
    return Duplicates.of(direct, Fleet.SUBSCRIBERS, Subscriber.MOST_IN_FLIGHT);
  }
}
