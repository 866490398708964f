package dev.outbox4j.examples.docs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The SQL of the documents, so that tests run what is printed there. */
final class DocumentedSql {
  private DocumentedSql() {}

  /** Returns the block that follows {@code <!-- sql: name -->} in a document of {@code docs}. */
  static String of(String document, String name) throws IOException {
    String text = Files.readString(Path.of("..", "docs", document));
    Matcher block =
        Pattern.compile("<!-- sql: " + name + " -->\\R *```sql\\R(.*?)\\R *```", Pattern.DOTALL)
            .matcher(text);
    if (!block.find()) {
      throw new AssertionError("docs/" + document + " has no block <!-- sql: " + name + " -->");
    }
    return block.group(1);
  }
}
