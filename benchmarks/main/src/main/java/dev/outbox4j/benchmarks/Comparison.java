package dev.outbox4j.benchmarks;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.Map;

/**
 * What the last comparison of two builds has found, of which commits and where.
 *
 * @param commit this build's
 * @param baseline the other's
 * @param server the server's settings
 * @param figures the quotients
 */
record Comparison(
    String commit, String baseline, Map<String, String> server, Map<String, Figure> figures) {

  static Comparison of(Report report, Map<String, Figure> figures) {
    return new Comparison(
        report.commit(), Report.commitAt(ClassPath.baseline()), report.serverSettings(), figures);
  }

  /** Writes it, in the place of an earlier one. */
  void write(Path file) throws IOException {
    ObjectNode root = Json.MAPPER.createObjectNode();
    root.put("date", LocalDate.now(ZoneOffset.UTC).toString());
    root.put("commit", commit);
    root.put("baseline", baseline);
    root.set("machine", Json.MAPPER.valueToTree(Report.machine()));
    root.set("server", Json.MAPPER.valueToTree(server));
    ObjectNode all = root.putObject("figures");
    figures.forEach(
        (name, figure) ->
            all.putObject(name)
                .put("value", figure.rounded())
                .put("low", figure.roundedLow())
                .put("high", figure.roundedHigh())
                .put("rounds", figure.rounds())
                .put("coverage_percent", figure.coverage()));
    Files.createDirectories(file.toAbsolutePath().getParent());
    Json.MAPPER.writeValue(file.toFile(), root);
  }
}
