package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Holds {@code docs/dependencies.md} to what Maven resolves: the build writes that to {@code
 * target/dependency-tree.txt} of each module.
 */
class DependenciesTest {
  private static final Path PAGE = Pom.ROOT.resolve("docs").resolve("dependencies.md");

  /** {@code - `module`: ...} or {@code - `module` with `group:artifact`: ...} */
  private static final Pattern ITEM =
      Pattern.compile("- `([\\w-]+)`(?: with `([\\w.-]+:[\\w.-]+)`)?: (.*)");

  private static final Pattern COORDINATES = Pattern.compile("`([\\w.-]+:[\\w.-]+)`");

  /** A line of Maven's tree: what leads to it, three characters a level, and the artifact. */
  private static final Pattern NODE =
      Pattern.compile("((?:[|+\\\\ ][ -] )*)\\(?([\\w.-]+:[\\w.-]+):\\S+?(?::(\\w+))?(?=[ )]|$).*");

  static List<Path> modules() throws IOException {
    return Pom.published();
  }

  @ParameterizedTest
  @MethodSource("modules")
  void whatAModuleBringsIsWhatMavenResolves(Path module) throws IOException {
    assertThat(documented().getOrDefault(Pom.read(module.resolve("pom.xml")).artifact(), List.of()))
        .as("the line of %s in %s", module.getFileName(), PAGE.getFileName())
        .containsExactlyElementsOf(resolved(module));
  }

  @ParameterizedTest
  @MethodSource("modules")
  void theOptionalDependenciesOfAModuleAreListed(Path module) throws IOException {
    Pom pom = Pom.read(module.resolve("pom.xml"));
    assertThat(
            items()
                .filter(item -> item.group(1).equals(pom.artifact()) && item.group(2) != null)
                .map(item -> item.group(2)))
        .containsExactlyElementsOf(optionalOf(pom));
  }

  private static List<String> optionalOf(Pom pom) {
    return pom.dependencies().stream()
        .filter(Pom.Dependency::optional)
        .map(Pom.Dependency::name)
        .sorted()
        .toList();
  }

  @Test
  void noModuleIsListedThatIsNotPublished() throws IOException {
    List<String> published = new ArrayList<>();
    for (Path module : modules()) {
      published.add(Pom.read(module.resolve("pom.xml")).artifact());
    }
    assertThat(items().map(item -> item.group(1))).isSubsetOf(published);
  }

  /** Services without Spring get nothing of it. */
  @ParameterizedTest
  @MethodSource("modules")
  void onlyTheModulesForSpringBringSpring(Path module) throws IOException {
    if (!module.getFileName().toString().contains("spring")) {
      assertThat(resolved(module)).noneMatch(name -> name.startsWith("org.springframework"));
    }
  }

  /**
   * What a user gets: all that the dependencies lead to which are neither optional nor for tests.
   * By the whole tree, since Maven shows each artifact once, be it below an optional one or a
   * test's.
   */
  private static List<String> resolved(Path module) throws IOException {
    Path file = module.resolve("target").resolve("dependency-tree.txt");
    assertThat(file)
        .as(
            "%s is missing: the build writes it; run ./mvnw verify, or ./mvnw test -pl examples,outbox-spring-boot-3 -am",
            file)
        .exists();
    List<String> optional = optionalOf(Pom.read(module.resolve("pom.xml")));
    Map<String, Set<String>> children = new TreeMap<>();
    Set<String> direct = new TreeSet<>();
    List<String> path = new ArrayList<>();
    for (String line : Files.readAllLines(file)) {
      Matcher node = NODE.matcher(line);
      assertThat(node.matches()).as("a line of %s that is not understood: %s", file, line).isTrue();
      int depth = node.group(1).length() / 3;
      path.subList(Math.min(depth, path.size()), path.size()).clear();
      path.add(node.group(2));
      if (depth > 1) {
        children.computeIfAbsent(path.get(depth - 1), none -> new TreeSet<>()).add(node.group(2));
      } else if (depth == 1
          && Set.of("compile", "runtime").contains(String.valueOf(node.group(3)))
          && !optional.contains(node.group(2))) {
        direct.add(node.group(2));
      }
    }
    Set<String> reached = new TreeSet<>();
    Deque<String> open = new ArrayDeque<>(direct);
    while (!open.isEmpty()) {
      String next = open.removeFirst();
      if (reached.add(next)) {
        open.addAll(children.getOrDefault(next, Set.of()));
      }
    }
    return List.copyOf(reached);
  }

  /** What each module brings, by its name. */
  private static Map<String, List<String>> documented() throws IOException {
    Map<String, List<String>> all = new TreeMap<>();
    items()
        .filter(item -> item.group(2) == null)
        .forEach(
            item -> {
              Matcher coordinates = COORDINATES.matcher(item.group(3));
              List<String> names = new ArrayList<>();
              while (coordinates.find()) {
                names.add(coordinates.group(1));
              }
              all.put(item.group(1), names);
            });
    return all;
  }

  /** The items of the page's lists, each on one line. */
  private static Stream<Matcher> items() throws IOException {
    return Files.readString(PAGE)
        .replaceAll("\\n {2,}(?=\\S)", " ")
        .lines()
        .map(ITEM::matcher)
        .filter(Matcher::matches);
  }
}
