package dev.outbox4j.examples.docs;

import java.io.IOException;
import java.io.StringReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.w3c.dom.Element;
import org.w3c.dom.Node;
import org.w3c.dom.NodeList;
import org.xml.sax.InputSource;
import org.xml.sax.SAXException;

/** A pom.xml as it is written: nothing is inherited. */
record Pom(Element project) {
  /** This project's own. */
  static final Path ROOT = Path.of(System.getProperty("basedir", "")).toAbsolutePath().getParent();

  private static final Pattern PROPERTY = Pattern.compile("\\$\\{([^}]+)}");

  /** Not published: services that use the library. */
  private static final String EXAMPLES = "examples";

  /** A dependency as it is written, with its properties filled in; what is not said is empty. */
  record Dependency(
      String group, String artifact, String version, String type, String scope, boolean optional) {
    String name() {
      return group + ":" + artifact;
    }
  }

  static Pom read(Path file) throws IOException {
    return parse(Files.readString(file));
  }

  static Pom parse(String text) throws IOException {
    try {
      return new Pom(
          DocumentBuilderFactory.newInstance()
              .newDocumentBuilder()
              .parse(new InputSource(new StringReader(text)))
              .getDocumentElement());
    } catch (SAXException | ParserConfigurationException e) {
      throw new IOException("Not XML: " + text, e);
    }
  }

  static Pom root() throws IOException {
    return read(ROOT.resolve("pom.xml"));
  }

  /** The folders of the modules that users get. */
  static List<Path> published() throws IOException {
    return elements(child(root().project(), "modules").orElseThrow(), "module")
        .map(Element::getTextContent)
        .filter(module -> !module.startsWith(EXAMPLES))
        .map(ROOT::resolve)
        .toList();
  }

  String artifact() {
    return text(project, "artifactId");
  }

  String version() {
    return text(project, "version");
  }

  String property(String name) {
    return child(project, "properties").map(all -> text(all, name)).orElse("");
  }

  List<Dependency> dependencies() {
    return dependencies(project);
  }

  /** What this pom says of versions. */
  List<Dependency> managed() {
    return child(project, "dependencyManagement").map(this::dependencies).orElse(List.of());
  }

  private List<Dependency> dependencies(Element parent) {
    return child(parent, "dependencies").stream()
        .flatMap(all -> elements(all, "dependency"))
        .map(
            one ->
                new Dependency(
                    text(one, "groupId"),
                    text(one, "artifactId"),
                    text(one, "version"),
                    text(one, "type"),
                    text(one, "scope"),
                    text(one, "optional").equals("true")))
        .toList();
  }

  private String text(Element parent, String name) {
    String text = child(parent, name).map(Element::getTextContent).orElse("").strip();
    Matcher property = PROPERTY.matcher(text);
    return property.replaceAll(
        found ->
            Matcher.quoteReplacement(
                found.group(1).equals("project.version") ? version() : property(found.group(1))));
  }

  private static Optional<Element> child(Element parent, String name) {
    return elements(parent, name).findFirst();
  }

  private static Stream<Element> elements(Element parent, String name) {
    List<Element> found = new ArrayList<>();
    NodeList children = parent.getChildNodes();
    for (int i = 0; i < children.getLength(); i++) {
      Node child = children.item(i);
      if (child instanceof Element element && element.getTagName().equals(name)) {
        found.add(element);
      }
    }
    return found.stream();
  }
}
