package dev.outbox4j.examples.chaos;

import java.sql.SQLException;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.sql.DataSource;

/** Second effects of messages, each by the reason that allows it, if any does. */
final class Duplicates {
  /** Why there may be a second effect. */
  enum Reason {
    /** The first one's process was killed before its ack was written. */
    KILL,
    /** The first one's lease ran out, since its process was frozen or cut off. */
    LEASE,
    /** The first handler reported a failure although its effect was there. */
    UNHEARD_EFFECT,
    /** No fault hit the first one's process meanwhile, or its lease was still in force. */
    UNEXPLAINED
  }

  /**
   * Pairs a run with the next one of its message by token: by time, a frozen handler that goes on
   * would come after the one that replaced it. A pair needs a fault that hit the process of its
   * first run between the beginning of the earlier run and the later effect: a long run may have
   * lost its lease well before its effect. And that run must have reported a failure or lost its
   * lease: to time, or already when it wrote its effect (then the row was another's, not only
   * without a lease), or with the column that holds leases.
   */
  private static final String PAIRS =
      """
      with runs as (
        select no, outbox_id, token, row_token, owner, lease_until, at,
          lead(token) over w as next_token, lead(at) over w as next_at,
          coalesce(began, at) as began, lead(coalesce(began, at)) over w as next_began
        from handled
        where not in_order and no in (select no from handled group by no having count(*) > 1)
        window w as (partition by no order by token, at)
      ), pairs as (
        select r.*, t.token is not null as reported,
          array(
            select f.fault from faults f
            where (f.owner is null or f.owner = r.owner)
              and f.hit_from <= greatest(r.at, r.next_at)
              and f.hit_to >= least(r.began, r.next_began)
          ) as faults
        from runs r
        left join (select distinct outbox_id, token from retried) t
          on t.outbox_id = r.outbox_id and t.token = r.token
        where r.next_token is not null
      ), reasons as (
        select faults, case
          when token = next_token or cardinality(faults) = 0 then 'UNEXPLAINED'
          when reported then 'UNHEARD_EFFECT'
          when not faults && array['drop-column', 'jump-clock'] and not case
            when lease_until is null then row_token is distinct from token
            else next_at >= lease_until end then 'UNEXPLAINED'
          when 'kill-subscriber' = any(faults) then 'KILL'
          else 'LEASE' end as reason
        from pairs
      )
      """;

  private static final String BY_REASON =
      PAIRS + "select reason || ' ' || count(*) from reasons group by reason";

  /** A pair that meets several faults counts for each. */
  private static final String BY_FAULT =
      PAIRS
          + "select fault || ' ' || count(*) from reasons, unnest(faults) as fault"
          + " group by fault order by fault";

  /**
   * Each with the most that it allows: as often as it hit a process, the rows that one may hold.
   */
  private static final String AFTER_LEASE_AND_MOST =
      PAIRS
          + "select fault || ' ' || found || ' ' || coalesce(hits, 0) * ? from ("
          + " select fault, count(*) as found from reasons, unnest(faults) as fault"
          + " where reason = 'LEASE' group by fault) x"
          + " left join (select fault, sum(case when owner is null then ? else 1 end) as hits"
          + " from faults group by fault) y using (fault) order by fault";

  private static final String AFTER_BRIEF_FAULTS =
      PAIRS + "select count(*) from reasons where reason = 'LEASE' and faults <@ ?::text[]";

  private final Map<Reason, Long> counts = new EnumMap<>(Reason.class);
  private final Map<String, Long> byFault = new TreeMap<>();
  private final Map<String, Bounded> afterLease = new TreeMap<>();
  private final long afterBriefFaults;

  /** How many there are, and how many there may be. */
  record Bounded(long found, long most) {
    /** By fault, from lines that have the fault, how many there are and how many there may be. */
    static Map<String, Bounded> of(List<String> lines) {
      Map<String, Bounded> byFault = new TreeMap<>();
      for (String line : lines) {
        List<String> words = List.of(line.split(" ", -1));
        byFault.put(
            words.get(0), new Bounded(Long.parseLong(words.get(1)), Long.parseLong(words.get(2))));
      }
      return byFault;
    }

    /** Those faults of which there are more than there may be. */
    static List<String> excesses(Map<String, Bounded> byFault) {
      return byFault.entrySet().stream()
          .filter(each -> each.getValue().found() > each.getValue().most())
          .map(each -> each.getKey() + ": " + each.getValue())
          .toList();
    }

    /** As in a report. */
    @Override
    public String toString() {
      return found + " of at most " + most;
    }
  }

  private Duplicates(long afterBriefFaults) {
    this.afterBriefFaults = afterBriefFaults;
  }

  /**
   * @param subscribers how many there are
   * @param mostInFlight the most rows that one has under its lease
   */
  static Duplicates of(DataSource direct, int subscribers, int mostInFlight) throws SQLException {
    Duplicates duplicates =
        new Duplicates(Database.number(direct, AFTER_BRIEF_FAULTS, Fault.briefOnes()));
    for (String line : Database.texts(direct, BY_REASON)) {
      int gap = line.indexOf(' ');
      duplicates.counts.put(
          Reason.valueOf(line.substring(0, gap)), Long.valueOf(line.substring(gap + 1)));
    }
    for (String line : Database.texts(direct, BY_FAULT)) {
      int gap = line.lastIndexOf(' ');
      duplicates.byFault.put(line.substring(0, gap), Long.valueOf(line.substring(gap + 1)));
    }
    duplicates.afterLease.putAll(
        Bounded.of(Database.texts(direct, AFTER_LEASE_AND_MOST, mostInFlight, subscribers)));
    return duplicates;
  }

  /**
   * Second effects of which only faults shorter than half a lease tell, though each lease is
   * renewed at its half, and each outcome written again until it is there: none is due to those.
   */
  long afterBriefFaults() {
    return afterBriefFaults;
  }

  /** Second effects after the end of a lease, of each fault. */
  Map<String, Bounded> afterLease() {
    return Collections.unmodifiableMap(afterLease);
  }

  /** The faults that have more second effects after the end of a lease than they may. */
  List<String> excesses() {
    return Bounded.excesses(afterLease);
  }

  /** How many there are of each fault. */
  Map<String, Long> byFault() {
    return Collections.unmodifiableMap(byFault);
  }

  long count(Reason reason) {
    return counts.getOrDefault(reason, 0L);
  }

  /** How many there are, explained or not. */
  long all() {
    return counts.values().stream().mapToLong(each -> each).sum();
  }
}
