package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Holds the documents to links that lead somewhere and to tables that can be read. */
class DocumentedPagesTest {
  private static final Path ROOT =
      Path.of(System.getProperty("basedir", "")).toAbsolutePath().getParent();

  @TempDir Path folder;

  @Test
  void linksLeadToFilesAndHeadingsAndNoTableIsWide() throws IOException {
    List<Path> documents = new ArrayList<>(DocumentedSamples.filesIn(ROOT.resolve("docs"), ".md"));
    documents.add(ROOT.resolve("README.md"));
    documents.add(ROOT.resolve("CHANGELOG.md"));

    assertThat(documents).hasSizeGreaterThan(15);
    assertThat(DocumentedPages.faults(ROOT, documents)).isEmpty();
  }

  /** The site's build says the same, later and only where there is Node. */
  @Test
  void everyPageIsInTheMenuOfTheSite() throws IOException {
    String menu = Files.readString(ROOT.resolve("docs/site/.vitepress/pages.mjs"));

    assertThat(DocumentedSamples.filesIn(ROOT.resolve("docs"), ".md"))
        .extracting(page -> ROOT.relativize(page).toString().replace('\\', '/'))
        .allSatisfy(page -> assertThat(menu).contains("{ file: '" + page + "', "));
  }

  @Test
  void findsALinkToNoFileAndOneOutOfTheProject() throws IOException {
    assertThat(
            faults(
                """
                fine: [page](page.md), [elsewhere](https://example.org/none)
                [gone](gone.md) and ![gone, too](images/gone.svg)
                [outside](../other.md)
                """))
        .containsExactly(
            "page.md:2: gone.md leads to no file",
            "page.md:2: images/gone.svg leads to no file",
            "page.md:3: ../other.md leads out of the project");
  }

  @Test
  void findsALinkToNoHeading() throws IOException {
    Files.writeString(folder.resolve("other.md"), "# Other\n\n```\n# no heading\n```\n");

    assertThat(
            faults(
                """
                # The `lease`: what is it?
                ## Twice
                ## Twice
                [a](#the-lease-what-is-it) [b](#twice-1) [c](other.md#other) [d](page.md#twice)
                [e](#twice-2)
                a link whose text goes on in the [next
                line](other.md#no-heading)
                """))
        .satisfiesExactly(
            fault -> assertThat(fault).startsWith("page.md:5: #twice-2 leads to no heading"),
            fault ->
                assertThat(fault).startsWith("page.md:7: other.md#no-heading leads to no heading"));
  }

  @Test
  void leavesCodeAlone() throws IOException {
    assertThat(faults("`[a](gone.md)`, `[a\nb](gone.md)`\n\n```\n[a](gone.md)\n```\n")).isEmpty();
  }

  @Test
  void findsARowThatIsTooWide() throws IOException {
    String row = "| " + "a".repeat(DocumentedPages.WIDEST_ROW - 4) + " |\n";

    assertThat(faults(row + row.replace("aa |", "aaa |") + "```\n" + row.repeat(2) + "```\n"))
        .containsExactly(
            "page.md:2: a row of a table has 121 characters, more than 120: make it a list");
  }

  @Test
  void namesHeadingsAsGitHubDoes() {
    assertThat(DocumentedPages.anchor("What if the process dies here?"))
        .isEqualTo("what-if-the-process-dies-here");
    assertThat(DocumentedPages.anchor("HikariCP's pauses")).isEqualTo("hikaricps-pauses");
    assertThat(DocumentedPages.anchor("A [link](x.md) & `code_of()`")).isEqualTo("a-link--code_of");
    assertThat(DocumentedPages.anchor("[0.1.0] - 2026")).isEqualTo("010---2026");
  }

  private List<String> faults(String text) throws IOException {
    return DocumentedPages.faults(
        folder, List.of(Files.writeString(folder.resolve("page.md"), text)));
  }
}
