package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.Duplicates.Bounded;
import java.sql.SQLException;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import javax.sql.DataSource;

/** Second effects of messages of the ordered queue, by the faults that may be the reason. */
final class RepeatsInOrder {
  /**
   * Rows of that queue have no tokens of their own, so runs are paired by time, and a frozen
   * handler that goes on may come second: a fault that hit the process of either may be the reason.
   * Those are left out of whose message a failure was counted: the handler may not have heard of
   * its effect.
   */
  private static final String REPEATS =
      """
      with runs as (
        select no, outbox_id, owner, at, coalesce(began, at) as began,
          lead(owner) over w as next_owner, lead(at) over w as next_at
        from handled where in_order window w as (partition by no order by nth)
      ), repeats as (
        select array(
          select distinct f.fault from faults f
          where (f.owner is null or f.owner in (r.owner, r.next_owner))
            and f.hit_from <= greatest(r.at, r.next_at) and f.hit_to >= r.began) as faults
        from runs r
        where r.next_at is not null
          and not exists (select from retried t where t.outbox_id = r.outbox_id)
      )
      """;

  private static final String OF_BRIEF_FAULTS =
      REPEATS
          + "select count(*) from repeats where cardinality(faults) > 0 and faults <@ ?::text[]";

  /** As often as a fault hit a process, what one may have read and not settled. */
  private static final String BY_FAULT_AND_MOST =
      REPEATS
          + "select fault || ' ' || found || ' ' || coalesce(hits, 0) * ? from ("
          + " select fault, count(*) as found from repeats, unnest(faults) as fault"
          + " group by fault) x"
          + " left join (select fault, sum(case when owner is null then ? else 1 end) as hits"
          + " from faults group by fault) y using (fault) order by fault";

  private final long ofBriefFaults;
  private final Map<String, Bounded> byFault;

  private RepeatsInOrder(long ofBriefFaults, Map<String, Bounded> byFault) {
    this.ofBriefFaults = ofBriefFaults;
    this.byFault = byFault;
  }

  /**
   * @param subscribers how many processes there are
   * @param most how many messages one may have read and not settled
   */
  static RepeatsInOrder of(DataSource direct, int subscribers, int most) throws SQLException {
    return new RepeatsInOrder(
        Database.number(direct, OF_BRIEF_FAULTS, Fault.briefOnes()),
        Bounded.of(Database.texts(direct, BY_FAULT_AND_MOST, most, subscribers)));
  }

  /**
   * Those of which only faults shorter than half a lease tell: buckets are renewed at its half, and
   * each outcome is written again until it is there, so none is due to these.
   */
  long ofBriefFaults() {
    return ofBriefFaults;
  }

  /** How many there are of each fault, and how many there may be. */
  Map<String, Bounded> byFault() {
    return Collections.unmodifiableMap(byFault);
  }

  /** The faults that have more than they may. */
  List<String> excesses() {
    return Bounded.excesses(byFault);
  }
}
