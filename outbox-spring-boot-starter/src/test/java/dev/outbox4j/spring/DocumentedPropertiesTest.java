package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Holds the page's list of properties to the metadata that IDEs read. */
class DocumentedPropertiesTest {
  private static final Path PAGE =
      Path.of(System.getProperty("basedir", "")).toAbsolutePath().resolve("../docs/spring-boot.md");
  private static final Pattern ROW = Pattern.compile("\\| `(outbox4j\\.[a-z0-9.-]+)` \\|.*");

  @Test
  void thePageListsEachPropertyAndNoOther() throws IOException {
    Set<String> listed = new TreeSet<>();
    for (String line : Files.readAllLines(PAGE)) {
      Matcher row = ROW.matcher(line);
      if (row.matches()) {
        listed.add(row.group(1));
      }
    }
    Set<String> known = new TreeSet<>();
    for (JsonNode property : metadata().get("properties")) {
      assertThat(property.path("description").asString(""))
          .as("%s", property.get("name"))
          .isNotBlank();
      if (property.get("name").asString().startsWith("outbox4j.")) { // the endpoint's are Boot's
        known.add(property.get("name").asString());
      }
    }
    assertThat(known.remove("outbox4j.queues")).as("the same settings by queue").isTrue();
    assertThat(listed).isEqualTo(known);
  }

  /** Beside the class: the tests' own properties have metadata, too. */
  private static JsonNode metadata() throws IOException {
    String place =
        OutboxProperties.class.getProtectionDomain().getCodeSource().getLocation().toString();
    URL beside =
        OutboxProperties.class
            .getClassLoader()
            .resources("META-INF/spring-configuration-metadata.json")
            .filter(metadata -> metadata.toString().contains(place))
            .findFirst()
            .orElseThrow(() -> new AssertionError("no metadata for IDEs in " + place));
    try (InputStream json = beside.openStream()) {
      return JsonMapper.shared().readTree(json);
    }
  }
}
