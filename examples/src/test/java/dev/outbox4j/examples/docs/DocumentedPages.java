package dev.outbox4j.examples.docs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Looks for dead links and for wide tables in Markdown. A link is relative, leads to a file of the
 * project, and its anchor to a heading, by the rules of GitHub; links to other sites are left
 * alone. What is in code is no link.
 */
final class DocumentedPages {
  static final int WIDEST_ROW = 120;

  private static final Pattern FENCE = Pattern.compile("\\s*```.*");
  private static final Pattern CODE = Pattern.compile("`[^`]*`");
  private static final Pattern LINK = Pattern.compile("]\\(([^()\\s]+)\\)");
  private static final Pattern HEADING = Pattern.compile("#{1,6} +(.*?) *#*");
  private static final Pattern LABEL = Pattern.compile("\\[([^]]*)]\\([^)]*\\)");
  private static final Pattern ELSEWHERE = Pattern.compile("[a-z]+:.*");

  private final Path root;
  private final Map<Path, Set<String>> anchors = new HashMap<>();
  private final List<String> faults = new ArrayList<>();

  private DocumentedPages(Path root) {
    this.root = root.toAbsolutePath().normalize();
  }

  /** All that is wrong with the documents of a project. */
  static List<String> faults(Path root, List<Path> documents) throws IOException {
    DocumentedPages pages = new DocumentedPages(root);
    for (Path document : documents) {
      pages.read(document.toAbsolutePath().normalize());
    }
    return pages.faults;
  }

  private void read(Path document) throws IOException {
    // a link may be broken over two lines, and so may a piece of code
    StringBuilder text = new StringBuilder();
    List<String> lines = Files.readAllLines(document);
    boolean code = false;
    for (int i = 0; i < lines.size(); i++) {
      String line = lines.get(i);
      if (FENCE.matcher(line).matches()) {
        code = !code;
      } else if (!code) {
        if (line.startsWith("|") && line.length() > WIDEST_ROW) {
          faults.add(
              "%s:%d: a row of a table has %d characters, more than %d: make it a list"
                  .formatted(root.relativize(document), i + 1, line.length(), WIDEST_ROW));
        }
        text.append(line);
      }
      text.append('\n');
    }
    Matcher link = LINK.matcher(withoutCode(text.toString()));
    while (link.find()) {
      long line = 1 + text.substring(0, link.start()).chars().filter(c -> c == '\n').count();
      check(document, link.group(1))
          .forEach(
              fault -> faults.add("%s:%d: %s".formatted(root.relativize(document), line, fault)));
    }
  }

  /** Of the same length, so that places stay the same. */
  private static String withoutCode(String text) {
    return CODE.matcher(text).replaceAll(code -> code.group().replaceAll("[^\n]", " "));
  }

  private List<String> check(Path document, String link) throws IOException {
    if (ELSEWHERE.matcher(link).matches()) {
      return List.of();
    }
    int hash = link.indexOf('#');
    String path = hash < 0 ? link : link.substring(0, hash);
    Path target = path.isEmpty() ? document : document.resolveSibling(path).normalize();
    if (!target.startsWith(root)) {
      return List.of(link + " leads out of the project");
    }
    if (!Files.exists(target)) {
      return List.of(link + " leads to no file");
    }
    if (hash < 0 || anchors(target).contains(link.substring(hash + 1))) {
      return List.of();
    }
    return List.of(link + " leads to no heading; there are " + new ArrayList<>(anchors(target)));
  }

  private Set<String> anchors(Path document) throws IOException {
    if (!anchors.containsKey(document)) {
      Set<String> found = new HashSet<>();
      boolean code = false;
      for (String line : Files.readAllLines(document)) {
        Matcher heading = HEADING.matcher(line);
        if (FENCE.matcher(line).matches()) {
          code = !code;
        } else if (!code && heading.matches()) {
          String anchor = anchor(heading.group(1));
          String unique = anchor;
          for (int i = 1; !found.add(unique); i++) {
            unique = anchor + "-" + i;
          }
        }
      }
      anchors.put(document, found);
    }
    return anchors.get(document);
  }

  static String anchor(String heading) {
    return LABEL
        .matcher(heading)
        .replaceAll("$1")
        .toLowerCase(Locale.ROOT)
        .replaceAll("[^\\p{L}\\p{N} _-]", "")
        .replace(' ', '-');
  }
}
