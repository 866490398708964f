package dev.outbox4j.monitor.internal;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.ServerTime;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.triggers.internal.GroupedCalls;
import dev.outbox4j.triggers.internal.Parameters;
import dev.outbox4j.triggers.internal.Statements;
import java.sql.ResultSet;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Commits checks that say nothing but when to look again, with the messages that wake their
 * instances: those of many workers in one statement, which one of them sends. Each is judged by
 * itself, and what is not written is left to a transaction of its own. Thread-safe.
 */
final class GroupedWrites {
  private static final Logger log = LoggerFactory.getLogger(GroupedWrites.class);

  /** So that a group takes the server some milliseconds. */
  static final int MOST = 100;

  private final Jdbc jdbc;
  private final Statements statements;
  private final String channel;
  private final GroupedCalls<Asked, Boolean> groups =
      new GroupedCalls<>(this::write, GroupedWrites::isOutage, MOST);

  GroupedWrites(PostgresOutbox outbox, String application) {
    this.jdbc =
        new Jdbc(outbox.dataSource(), outbox.table(), PostgresOutbox.DEFAULT_NETWORK_TIMEOUT);
    this.statements = new Statements(outbox.table(), application);
    this.channel = outbox.table().channel();
  }

  /**
   * What one worker has to write.
   *
   * @param lease the message's
   * @param owner who has it
   * @param again what its check has said
   */
  record Asked(LeaseRef lease, String owner, Again again) {}

  /** Each that then tried by itself would wait as long once more, or might write it twice. */
  private static boolean isOutage(RuntimeException failure) {
    return failure instanceof OutboxStoreException ofStore
        && (ofStore.outcomeUnknown() || ofStore.fault() == Fault.CONNECTION);
  }

  /**
   * Returns whether it was written and committed; if not, nothing of it was.
   *
   * @throws OutboxStoreException if there was no connection, or it was lost; {@code
   *     outcomeUnknown()} tells whether it may have been written
   */
  boolean write(Asked asked) {
    return asked.lease().bucket() == null && Boolean.TRUE.equals(groups.call(asked));
  }

  /** {@return which of them were written, in their order} */
  List<@Nullable Boolean> write(List<Asked> asked) {
    Set<Integer> written;
    try {
      written = places(asked);
    } catch (OutboxStoreException e) {
      if (isOutage(e)) {
        throw e;
      }
      log.debug("{} checks could not be committed together: each goes by itself", asked.size(), e);
      written = Set.of();
    }
    List<@Nullable Boolean> answers = new ArrayList<>();
    for (int place = 1; place <= asked.size(); place++) {
      answers.add(written.contains(place));
    }
    return answers;
  }

  private Set<Integer> places(List<Asked> asked) {
    Map<String, Object> values =
        Parameters.of(asked)
            .texts("ids", each -> each.again().instance().id())
            .numbers("executions", each -> each.again().instance().execution())
            .numbers("iterations", each -> each.again().instance().iteration())
            .numbers("messages", each -> each.lease().id())
            .numbers("tokens", each -> each.lease().token())
            .texts("states", each -> each.again().result().state())
            .texts("custom_statuses", each -> each.again().result().customStatus())
            .texts("waits_for", each -> String.join("\n", each.again().result().waitsFor()))
            .truths("keeps_state", each -> each.again().result().keepsState())
            .truths("trims", each -> each.again().trims())
            .values();
    values.put(
        "delays",
        asked.stream()
            .mapToDouble(each -> ServerTime.seconds(each.again().result().delay()))
            .toArray());
    values.put("queue", asked.get(0).lease().queue());
    values.put("owner", asked.get(0).owner());
    values.put("channel", channel);
    List<Integer> places =
        jdbc.run(
            "commit of checks",
            connection ->
                statements.executeAlone(
                    jdbc,
                    connection,
                    MonitorSql.AGAIN_TOGETHER,
                    values,
                    results -> {
                      results.next();
                      try (ResultSet rows = results.next().rows()) {
                        return Statements.read(rows, row -> row.getInt(1));
                      }
                    }));
    return new HashSet<>(places);
  }
}
