package dev.outbox4j.postgres.internal;

import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.QueueScan;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.LookAhead;
import dev.outbox4j.spi.ScanBound;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Claims rows, and tells publishers or learns what comes next in the same execution. Immutable.
 *
 * <p>The oldest transaction is read before the rows are looked for and the next one afterwards, so
 * that a transaction which was over by the former has been seen by the claim, and one that may have
 * missed an announcement made earlier is below the latter.
 */
final class ClaimStatement {
  private enum Scan {
    SWEEP(StoreSql.CLAIM_SWEEP),
    ABOVE(StoreSql.CLAIM_ABOVE),
    QUEUES(StoreSql.CLAIM_QUEUES),
    QUEUES_SWEEP(StoreSql.CLAIM_QUEUES);

    final String template;

    Scan(String template) {
      this.template = template;
    }
  }

  private record Kind(Scan scan, Idle.Mode mode) {}

  private final Map<Kind, String> texts = new HashMap<>();

  ClaimStatement(StoreSql sql) {
    for (Scan scan : Scan.values()) {
      for (Idle.Mode mode : Idle.Mode.values()) {
        texts.put(
            new Kind(scan, mode),
            sql.render(StoreSql.PREAMBLE + scan.template + after(scan, mode)));
      }
    }
  }

  private static String after(Scan scan, Idle.Mode mode) {
    // a sweep only: what a bound is there to spare is not to be walked after all
    String lookAhead =
        scan == Scan.SWEEP || scan == Scan.QUEUES_SWEEP
            ? StoreSql.LOOK_AHEAD_SWEEP
            : StoreSql.LOOK_AHEAD;
    return switch (mode) {
      case UNCHANGED -> "";
      case AWAKE -> ";\n" + StoreSql.AWAKE;
      case LOOK_AHEAD -> ";\n" + lookAhead;
      case SLEEP -> ";\n" + StoreSql.SLEEP + ";\n" + lookAhead;
    };
  }

  ClaimResult execute(Connection connection, ClaimRequest request) throws SQLException {
    Idle.Mode mode = request.idle().mode();
    Scan scan = scan(request);
    String text = Objects.requireNonNull(texts.get(new Kind(scan, mode)));
    try (PreparedStatement statement = connection.prepareStatement(text)) {
      Parameters parameters = new Parameters(statement);
      bind(parameters, scan, request);
      bindIdle(parameters, request);
      Results results = Results.of(statement);
      Instant now;
      long oldest;
      try (ResultSet preamble = results.rows()) {
        preamble.next();
        now = ServerTime.read(preamble, 7);
        oldest = preamble.getLong(8);
      }
      List<ClaimedRow> rows;
      try (ResultSet claimed = results.next().rows()) {
        rows = RowReader.read(claimed, queues(request), now);
      }
      return new ClaimResult(rows, lookAhead(results, mode, oldest));
    }
  }

  private static Scan scan(ClaimRequest request) {
    if (request.queues().size() > 1) {
      return request.queues().stream().allMatch(scan -> bound(scan) == null)
          ? Scan.QUEUES_SWEEP
          : Scan.QUEUES;
    }
    return bound(request.queues().get(0)) == null ? Scan.SWEEP : Scan.ABOVE;
  }

  /** A bound is a hint, so one that is out of the ordinary is left out. */
  private static @Nullable ScanBound bound(QueueScan scan) {
    ScanBound above = scan.above();
    return above == null || !ServerTime.isCommon(above.availableAt()) ? null : above;
  }

  private static void bind(Parameters parameters, Scan scan, ClaimRequest request)
      throws SQLException {
    if (scan == Scan.QUEUES || scan == Scan.QUEUES_SWEEP) {
      bindQueues(parameters, request);
      parameters.number(request.limit());
    } else {
      QueueScan only = request.queues().get(0);
      ScanBound above = bound(only);
      parameters.text(only.queue());
      if (above != null) {
        parameters.object(above.availableAt().atOffset(ZoneOffset.UTC)).number(above.id());
      }
    }
    parameters.number(request.limit()).seconds(request.lease()).text(request.owner());
  }

  private static void bindQueues(Parameters parameters, ClaimRequest request) throws SQLException {
    int count = request.queues().size();
    String[] queues = new String[count];
    String[] instants = new String[count];
    long[] ids = new long[count];
    for (int i = 0; i < count; i++) {
      ScanBound above = bound(request.queues().get(i));
      queues[i] = request.queues().get(i).queue();
      instants[i] = above == null ? "-infinity" : above.availableAt().toString();
      ids[i] = above == null ? Long.MIN_VALUE : above.id();
    }
    parameters.object(queues).object(instants).object(ids);
  }

  private static void bindIdle(Parameters parameters, ClaimRequest request) throws SQLException {
    Idle idle = request.idle();
    switch (idle.mode()) {
      case UNCHANGED -> {}
      case AWAKE -> parameters.text(request.owner());
      case LOOK_AHEAD -> parameters.object(queues(request).toArray(String[]::new));
      case SLEEP -> {
        String[] queues = queues(request).toArray(String[]::new);
        parameters.text(request.owner()).seconds(idle.wakeIn()).object(queues).object(queues);
      }
    }
  }

  private static @Nullable LookAhead lookAhead(Results results, Idle.Mode mode, long oldest)
      throws SQLException {
    if (mode != Idle.Mode.LOOK_AHEAD && mode != Idle.Mode.SLEEP) {
      return null;
    }
    if (mode == Idle.Mode.SLEEP) {
      results.next();
    }
    try (ResultSet ahead = results.next().rows()) {
      ahead.next();
      Instant due = ServerTime.readNullable(ahead, 1);
      Instant now = ServerTime.read(ahead, 2);
      return new LookAhead(
          due == null || !ServerTime.isCommon(due) ? null : ServerTime.between(now, due),
          oldest,
          ahead.getLong(3));
    }
  }

  private static List<String> queues(ClaimRequest request) {
    return request.queues().stream().map(QueueScan::queue).distinct().toList();
  }
}
