package dev.outbox4j.testing;

import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/** Compiles a class {@code Sample} as a user would, and tells what javac says of it. */
public final class CompiledSample {
  private static final JavaCompiler JAVAC = ToolProvider.getSystemJavaCompiler();

  /** One for all: to list what is on the class path takes longer than to compile a sample. */
  private static final StandardJavaFileManager FILES =
      JAVAC.getStandardFileManager(null, null, null);

  private final Path classes;

  /**
   * Prepares it.
   *
   * @param classes an empty directory
   */
  public CompiledSample(Path classes) {
    this.classes = classes;
  }

  /**
   * Compiles the class.
   *
   * @param code its source
   * @return the errors; none if it compiles
   */
  public List<String> errors(String code) {
    DiagnosticCollector<JavaFileObject> found = new DiagnosticCollector<>();
    JavaFileObject source =
        new SimpleJavaFileObject(URI.create("string:///Sample.java"), JavaFileObject.Kind.SOURCE) {
          @Override
          public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return code;
          }
        };
    JAVAC
        .getTask(
            null,
            FILES,
            found,
            List.of(
                "-proc:none",
                "-d",
                classes.toString(),
                "-classpath",
                System.getProperty("java.class.path")),
            null,
            List.of(source))
        .call();
    return found.getDiagnostics().stream()
        .filter(each -> each.getKind() == Diagnostic.Kind.ERROR)
        .map(each -> each.getMessage(Locale.ENGLISH))
        .toList();
  }

  /** What is done with an instance. */
  @FunctionalInterface
  public interface Use<R> {
    /**
     * Uses it.
     *
     * @param sample the instance; its class is there until this returns
     * @return anything
     * @throws Exception if it fails
     */
    R of(Object sample) throws Exception;
  }

  /**
   * Makes an instance of the class that was compiled last, and uses it.
   *
   * @param use what to do
   * @param <R> what comes of it
   * @return what came of it
   * @throws Exception if it failed
   */
  public <R> R use(Use<R> use) throws Exception {
    try (URLClassLoader loader =
        new URLClassLoader(
            new URL[] {classes.toUri().toURL()}, CompiledSample.class.getClassLoader())) {
      return use.of(loader.loadClass("Sample").getDeclaredConstructor().newInstance());
    }
  }
}
