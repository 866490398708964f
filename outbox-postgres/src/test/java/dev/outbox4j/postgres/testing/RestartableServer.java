package dev.outbox4j.postgres.testing;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.postgresql.ds.PGSimpleDataSource;

/** An embedded server of a test's own, which can be crashed and started again on its port. */
public final class RestartableServer implements AutoCloseable {
  private final Path directory;
  private final int port;
  private EmbeddedPostgres server;

  private RestartableServer(Path directory) throws IOException {
    this.directory = directory;
    this.server = builder().start();
    this.port = server.getPort();
  }

  /** Starts a standby of this server, which is stopped for a moment to be copied. */
  public RestartableServer startStandby() throws Exception {
    Path copy = Files.createTempDirectory("outbox4j-standby");
    stop("INT");
    run("cp", "-a", directory.resolve("data").toString(), copy.toString());
    startAgain();
    follow(copy.resolve("data"), this);
    return new RestartableServer(copy);
  }

  /** Stops this server when its standbys have all it has written. */
  public void stop() throws Exception {
    stop("INT");
  }

  /** Starts this server as a standby of another, which was its standby. */
  public void startBehind(RestartableServer primary) throws IOException {
    follow(directory.resolve("data"), primary);
    startAgain();
  }

  private static void follow(Path data, RestartableServer primary) throws IOException {
    Files.writeString(data.resolve("standby.signal"), "");
    Files.writeString(
        data.resolve("postgresql.auto.conf"),
        "primary_conninfo = 'host=localhost port=%d user=postgres'%n".formatted(primary.port));
  }

  private static void run(String... command) throws Exception {
    int status = new ProcessBuilder(command).inheritIO().start().waitFor();
    if (status != 0) {
      throw new IllegalStateException(String.join(" ", command) + " ended with " + status);
    }
  }

  public static RestartableServer start() throws IOException {
    return new RestartableServer(Files.createTempDirectory("outbox4j-server"));
  }

  private EmbeddedPostgres.Builder builder() {
    return PostgresServer.builder()
        .setDataDirectory(directory.resolve("data"))
        .setCleanDataDirectory(false)
        .setServerConfig("fsync", "on")
        .setServerConfig("synchronous_commit", "on"); // a crash takes nothing that was committed
  }

  /** Ends the server at once, as its immediate mode does: what it has to recover is in its log. */
  public void crash() throws Exception {
    stop("QUIT");
  }

  private void stop(String signal) throws Exception {
    List<String> noted = Files.readAllLines(directory.resolve("data").resolve("postmaster.pid"));
    long pid = Long.parseLong(noted.get(0).strip());
    ProcessHandle postmaster = ProcessHandle.of(pid).orElseThrow();
    run("kill", "-" + signal, Long.toString(pid));
    postmaster.onExit().get(30, TimeUnit.SECONDS);
    server.close();
  }

  /** Returns once the server takes connections. */
  public void startAgain() throws IOException {
    server = builder().setPort(port).start();
  }

  public int port() {
    return port;
  }

  public PGSimpleDataSource dataSource() {
    PGSimpleDataSource source = new PGSimpleDataSource();
    source.setServerNames(new String[] {"localhost"});
    source.setPortNumbers(new int[] {port});
    source.setDatabaseName("postgres");
    source.setUser("postgres");
    source.setLoginTimeout((int) Duration.ofSeconds(5).toSeconds());
    return source;
  }

  @Override
  public void close() throws IOException {
    server.close();
    try (Stream<Path> files = Files.walk(directory)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    }
  }
}
