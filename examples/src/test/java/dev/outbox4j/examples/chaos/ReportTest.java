package dev.outbox4j.examples.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReportTest {
  @TempDir Path directory;
  private final Report report = new Report();

  @Test
  void isCleanWithinItsBounds() {
    report.mustBeZero("lost", 0);
    report.recoveryAfterKill(7);
    report.slotsAfterKill(2, 7);
    report.recoveryAfterServer(3);
    report.recoveryAfterPromotion(5);
    report.judgeRecoveries(7, 3, 5);

    assertThat(report.clean()).isTrue();
  }

  @Test
  void isNotCleanWithAFigureThatMustBeZero() {
    report.mustBeZero("lost", 1);

    assertThat(report.clean()).isFalse();
  }

  @Test
  void isNotCleanIfARecoveryTookTooLong() {
    Report slowServer = new Report();
    Report slowPromotion = new Report();
    Report keptSlots = new Report();
    keptSlots.slotsAfterKill(1, 7.1);
    report.recoveryAfterKill(7.1);
    slowServer.recoveryAfterServer(3.1);
    slowPromotion.recoveryAfterPromotion(5.1);
    report.judgeRecoveries(7, 3, 5);
    slowServer.judgeRecoveries(7, 3, 5);
    slowPromotion.judgeRecoveries(7, 3, 5);
    keptSlots.judgeRecoveries(7, 3, 5);

    assertThat(report.clean()).isFalse();
    assertThat(slowServer.clean()).isFalse();
    assertThat(slowPromotion.clean()).isFalse();
    assertThat(keptSlots.clean()).isFalse();
  }

  @Test
  void isNotCleanIfAPairOfFaultsWasLeftOut() {
    report.judgePairsDone(List.of());
    assertThat(report.clean()).isTrue();

    report.judgePairsDone(List.of("slow-network and freeze-subscriber"));
    assertThat(report.clean()).isFalse();
  }

  @Test
  void writesFiguresFaultsAndBreaches() throws IOException {
    report.figure("messages", 12);
    report.figure("kinds", Map.of("poison", 2));
    report.fault(Fault.CRASH_SERVER, crash(new Recovery(1.04, 2)), 5);
    report.fault(Fault.CRASH_SERVER, crash(new Recovery(2.2, 3.4)), 5);
    report.rowsHeldAtKill(4);
    report.rowsHeldAtKill(2);
    report.slotsAfterKill(2, 5.3);
    report.slotsAfterKill(1, 4.9);
    report.judgeRecoveries(7, 3, 5);
    report.breach("something else");

    report.write(directory.resolve("chaos-report.json"));

    JsonNode written = new ObjectMapper().readTree(directory.resolve("chaos-report.json").toFile());
    assertThat(written.get("messages").asInt()).isEqualTo(12);
    assertThat(written.get("kills").asInt()).isEqualTo(2);
    assertThat(written.get("least_rows_held_at_kill").asInt()).isEqualTo(2);
    assertThat(written.get("slots_held_at_kills").asInt()).isEqualTo(3);
    assertThat(written.get("worst_slots_given_back_after_kill_s").asDouble()).isEqualTo(5.3);
    assertThat(written.get("limit_of_recovery_after_kill_s").asInt()).isEqualTo(7);
    assertThat(written.get("breaches").get(0).asText()).isEqualTo("something else");
    assertThat(written.at("/faults/crash-server/times").asInt()).isEqualTo(2);
    assertThat(written.at("/faults/crash-server/worst_recovery_s").asDouble()).isEqualTo(2.2);
    assertThat(written.at("/faults/crash-server/worst_all_well_s").asDouble()).isEqualTo(3.4);
    assertThat(written.at("/evidence/crash-server/servers_started").asInt()).isEqualTo(2);
    assertThat(Files.readString(directory.resolve("chaos-report.md")))
        .contains("| `crash-server` | 2 | 2.2 | 2.2 | 3.4 | 3.4 |")
        .contains("- `crash-server`: servers_started 2\n")
        .contains("| `messages` | 12 |\n")
        .contains("| `kinds`: poison | 2 |\n")
        .contains("- something else");
  }

  @Test
  void isCleanAfterAFaultThatLeftItsSign() {
    report.fault(Fault.CRASH_SERVER, crash(new Recovery(1, 2)), 5);

    assertThat(report.clean()).isTrue();
  }

  @Test
  void namesAFaultThatLeftNoSign() throws IOException {
    Evidence none = new Evidence().sign("links_cut", 0).sign("statements_failed", 3);
    report.fault(Fault.CUT_NETWORK, new Episode(new Recovery(1, 2), none), 5);
    report.write(directory.resolve("chaos-report.json"));

    assertThat(report.clean()).isFalse();
    JsonNode written = new ObjectMapper().readTree(directory.resolve("chaos-report.json").toFile());
    assertThat(written.get("breaches").get(0).asText())
        .isEqualTo("nothing shows that cut-network happened: [links_cut is 0]");
  }

  private static Episode crash(Recovery recovery) {
    return new Episode(recovery, new Evidence().sign("servers_started", 1));
  }
}
