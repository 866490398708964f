package dev.outbox4j.examples.quickstart;

import java.util.List;

/**
 * One rule of the reconciliation.
 *
 * @param what the rule in words
 * @param orders which orders of the ledger {@code l} it is about, as an SQL condition
 * @param rule what must hold for each of them, as an SQL condition
 */
record Check(String what, String orders, String rule) {

  private static final String ORDER = "exists (select from orders o where o.id = l.order_id)";
  private static final String SHIPPED =
      "exists (select from shipments s where s.order_id = l.order_id)";
  private static final String DEAD =
      "exists (select from outbox_dlq d where d.headers ->> 'correlation-id' = l.order_id::text)";
  private static final String IN_OUTBOX =
      "exists (select from outbox m where m.headers ->> 'correlation-id' = l.order_id::text)";

  static List<Check> all() {
    return List.of(
        new Check("committed: its row is there", "l.committed", ORDER),
        new Check("committed, not poison: shipped", "l.committed and not l.poison", SHIPPED),
        new Check(
            "committed, not poison: no dead letter", "l.committed and not l.poison", not(DEAD)),
        new Check("rolled back: no row", "not l.committed", not(ORDER)),
        new Check("rolled back: not shipped", "not l.committed", not(SHIPPED)),
        new Check(
            "rolled back: no message, no dead letter",
            "not l.committed",
            not(IN_OUTBOX) + " and " + not(DEAD)),
        new Check(
            "rejected: one dead letter 'rejected', with the reason",
            "l.committed and l.kind = 'REJECTED'",
            deadOnce("rejected", "no carrier takes this item")),
        new Check(
            "always failing: one dead letter 'retry_terminal', with the exception",
            "l.committed and l.kind = 'ALWAYS_FAILING'",
            deadOnce("retry_terminal", SimulatedWorld.CURSE)),
        new Check("poison: not shipped", "l.committed and l.poison", not(SHIPPED)),
        new Check(
            "failing twice: shipped at the third attempt",
            "l.committed and l.kind = 'FAILS_TWICE'",
            "exists (select from shipments s where s.order_id = l.order_id and s.attempt = 3)"),
        new Check(
            "delayed: shipped, and not early",
            "l.committed and l.kind = 'DELAYED'",
            """
            exists (select from shipments s join orders o on o.id = s.order_id
                    where s.order_id = l.order_id and s.shipped_at >= o.not_before)"""));
  }

  private static String not(String condition) {
    return "not " + condition;
  }

  /** The texts are constants of this program, so they need no escaping. */
  private static String deadOnce(String reason, String text) {
    return """
        (select count(*) = 1 and bool_and(d.failure_reason = '%s'
                                          and coalesce(strpos(d.last_exception, '%s'), 0) > 0)
         from outbox_dlq d where d.headers ->> 'correlation-id' = l.order_id::text)"""
        .formatted(reason, text.replace("'", "''"));
  }

  /** Counts the orders it is about and those that break it, and names three of these. */
  String sql() {
    return """
        select count(*),
               count(*) filter (where not holds),
               (array_agg(order_id::text) filter (where not holds))[1:3]
        from (select l.order_id, %s as holds from ledger l where %s) checked
        """
        .formatted(rule, orders);
  }
}
