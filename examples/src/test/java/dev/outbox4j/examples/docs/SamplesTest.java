package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SamplesTest {
  private static final Path MODULE = Path.of(System.getProperty("basedir", "")).toAbsolutePath();

  // the tags are put in later, or they would be taken for tags of this very class
  private static final String CODE =
      """
      class Shop {
        void open() {
          // %1$s::open
          if (early()) {

            wait(1);
          }
          // %2$s::open
        }
      }
      """
          .formatted("tag", "end");

  @TempDir Path folder;

  @Test
  void documentsShowCompiledCode() throws IOException {
    Path root = MODULE.getParent();
    List<Path> documents = new ArrayList<>(DocumentedSamples.filesIn(root.resolve("docs"), ".md"));
    Path readme = root.resolve("README.md");
    if (Files.exists(readme)) {
      documents.add(readme);
    }

    assertThat(
            DocumentedSamples.faults(
                documents, MODULE.resolve("src"), MODULE.resolve("spring/boot-4/src")))
        .isEmpty();
  }

  @Test
  void acceptsABlockThatEqualsTheCodeButForItsIndentation() throws IOException {
    assertThat(
            faults(
                """
                <!-- sample: Shop#open -->
                ```java
                if (early()) {

                  wait(1);
                }
                ```
                """))
        .isEmpty();
  }

  @Test
  void namesTheFirstLineThatDiffers() throws IOException {
    assertThat(
            faults(
                """
                <!-- sample: Shop#open -->
                ```java
                if (early()) {

                  wait(2);
                }
                ```
                """))
        .singleElement()
        .asString()
        .contains(
            "page.md:2", "Shop#open", "line 3", "document:   wait(2);", "code:       wait(1);");
  }

  @Test
  void refusesAJavaBlockWithoutAMarkerAndASampleThatNoDocumentShows() throws IOException {
    assertThat(faults("```java\nint a;\n```\n"))
        .satisfiesExactly(
            fault -> assertThat(fault).contains("page.md:1", "no line <!-- sample:"),
            fault -> assertThat(fault).isEqualTo("no document shows the sample Shop#open"));
  }

  @Test
  void leavesOtherLanguagesAloneUnlessMarked() throws IOException {
    assertThat(faults("```sql\nselect 1\n```\n"))
        .containsExactly("no document shows the sample Shop#open");
    assertThat(faults("<!-- sample: Shop#open -->\n```text\nselect 1\n```\n"))
        .singleElement()
        .asString()
        .contains("differs from Shop#open");
  }

  @Test
  void refusesAMarkerOfNoSample() throws IOException {
    assertThat(faults("<!-- sample: Shop#close -->\n```java\nint a;\n```\n"))
        .first()
        .asString()
        .contains("there is no sample Shop#close");
  }

  @Test
  void refusesATagWithoutAnEnd() throws IOException {
    Files.writeString(folder.resolve("Yard.java"), "//" + " tag::gate\nint a;\n");

    assertThat(faults("")).contains("Yard#gate has no end");
  }

  private List<String> faults(String document) throws IOException {
    Files.writeString(folder.resolve("Shop.java"), CODE);
    Path page = Files.writeString(folder.resolve("page.md"), document);
    return DocumentedSamples.faults(List.of(page), folder);
  }
}
