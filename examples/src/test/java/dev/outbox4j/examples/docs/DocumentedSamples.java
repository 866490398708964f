package dev.outbox4j.examples.docs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Compares the code blocks of documents with the compiled code that they show. A block of Java, and
 * any other block if one likes, comes after a line {@code <!-- sample: ClassName#tag -->}; the code
 * is between {@code // tag::tag} and {@code // end::tag} in that class.
 */
final class DocumentedSamples {
  private static final Pattern MARKER = Pattern.compile("<!-- sample: (\\w+)#([\\w-]+) -->");
  private static final Pattern TAG = Pattern.compile("\\s*// (tag|end)::([\\w-]+)\\s*");
  private static final Pattern FENCE = Pattern.compile("\\s*```\\s*(\\w*).*");

  private final Map<String, List<String>> samples = new TreeMap<>();
  private final Set<String> shown = new HashSet<>();
  private final List<String> faults = new ArrayList<>();

  private DocumentedSamples() {}

  /** All that is wrong with the documents, and with the classes in folders that they may show. */
  static List<String> faults(List<Path> documents, Path... classes) throws IOException {
    DocumentedSamples all = new DocumentedSamples();
    for (Path folder : classes) {
      for (Path source : filesIn(folder, ".java")) {
        all.readSource(source);
      }
    }
    for (Path document : documents) {
      all.readDocument(document);
    }
    all.samples.keySet().stream()
        .filter(sample -> !all.shown.contains(sample))
        .forEach(sample -> all.faults.add("no document shows the sample " + sample));
    return all.faults;
  }

  /** The files below a folder with this ending, in order; none if there is no such folder. */
  static List<Path> filesIn(Path folder, String ending) throws IOException {
    if (!Files.isDirectory(folder)) {
      return List.of();
    }
    try (Stream<Path> files = Files.walk(folder)) {
      return files.filter(file -> file.toString().endsWith(ending)).sorted().toList();
    }
  }

  private void readSource(Path source) throws IOException {
    String className = source.getFileName().toString().replace(".java", "");
    Map<String, List<String>> open = new TreeMap<>();
    for (String line : Files.readAllLines(source)) {
      Matcher tag = TAG.matcher(line);
      if (!tag.matches()) {
        open.values().forEach(lines -> lines.add(line));
        continue;
      }
      String name = className + "#" + tag.group(2);
      if (tag.group(1).equals("tag")) {
        if (open.containsKey(name) || samples.containsKey(name)) {
          faults.add(name + " is tagged twice");
        }
        open.put(name, new ArrayList<>());
      } else if (open.containsKey(name)) {
        samples.put(name, withoutIndentation(open.remove(name)));
      } else {
        faults.add(name + " ends without having begun");
      }
    }
    open.keySet().forEach(name -> faults.add(name + " has no end"));
  }

  private void readDocument(Path document) throws IOException {
    List<String> lines = Files.readAllLines(document);
    String before = "";
    for (int i = 0; i < lines.size(); i++) {
      Matcher fence = FENCE.matcher(lines.get(i));
      if (fence.matches()) {
        int end = i + 1;
        while (end < lines.size() && !lines.get(end).strip().equals("```")) {
          end++;
        }
        String place = document.getFileName() + ":" + (i + 1);
        compare(place, fence.group(1), before, lines.subList(i + 1, end));
        i = end;
        before = "";
      } else if (!lines.get(i).isBlank()) {
        before = lines.get(i).strip();
      }
    }
  }

  private void compare(String place, String language, String before, List<String> block) {
    Matcher marker = MARKER.matcher(before);
    if (!marker.matches()) {
      if (language.equals("java")) {
        faults.add(place + ": no line <!-- sample: ClassName#tag --> comes before this Java block");
      }
      return;
    }
    String name = marker.group(1) + "#" + marker.group(2);
    shown.add(name);
    List<String> code = samples.get(name);
    if (code == null) {
      faults.add(place + ": there is no sample " + name);
      return;
    }
    firstDifference(code, withoutIndentation(block))
        .ifPresent(difference -> faults.add(place + ": differs from " + name + difference));
  }

  private static Optional<String> firstDifference(List<String> code, List<String> block) {
    if (code.equals(block)) {
      return Optional.empty();
    }
    int line = 0;
    while (line < Math.min(code.size(), block.size()) && code.get(line).equals(block.get(line))) {
      line++;
    }
    return Optional.of(
        " at its line %d%n  document: %s%n  code:     %s%nThe block must be:%n%s"
            .formatted(
                line + 1,
                line < block.size() ? block.get(line) : "(ends)",
                line < code.size() ? code.get(line) : "(ends)",
                String.join("\n", code)));
  }

  private static List<String> withoutIndentation(List<String> lines) {
    return lines.stream()
        .collect(Collectors.joining("\n"))
        .stripTrailing() // a last line counts as indentation even if it is blank
        .stripIndent()
        .lines()
        .map(String::stripTrailing)
        .collect(
            Collectors.collectingAndThen(Collectors.toList(), DocumentedSamples::withoutBlankEnds));
  }

  private static List<String> withoutBlankEnds(List<String> lines) {
    int from = 0;
    int to = lines.size();
    while (from < to && lines.get(from).isEmpty()) {
      from++;
    }
    while (to > from && lines.get(to - 1).isEmpty()) {
      to--;
    }
    return List.copyOf(lines.subList(from, to));
  }
}
