package dev.outbox4j.examples.chaos;

import com.zaxxer.hikari.HikariDataSource;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.postgresql.ds.PGSimpleDataSource;

/** A durable PostgreSQL of the harness's own, which can be crashed and started again. */
final class Server implements AutoCloseable {
  private final Path directory;
  private final EmbeddedPostgres postgres;
  private final HikariDataSource direct;

  Server(Path directory) throws IOException {
    this.directory = directory;
    this.postgres =
        EmbeddedPostgres.builder()
            .setOverrideWorkingDirectory(directory.resolve("binaries").toFile())
            .setDataDirectory(directory.resolve("data"))
            .setCleanDataDirectory(false)
            .setPGStartupWait(Duration.ofSeconds(60))
            .setServerConfig("max_connections", "200")
            .setServerConfig("shared_buffers", "256MB")
            .setServerConfig("max_wal_size", "4GB")
            .setServerConfig("work_mem", "64MB") // for the sums at the end
            .setServerConfig("fsync", "on")
            .setServerConfig("synchronous_commit", "on")
            .start();
    PGSimpleDataSource source = Database.retrying(port());
    source.setSocketTimeout(600); // the sums at the end take long
    source.setPrepareThreshold(0); // a plan kept from when the ledger was small would scan it
    this.direct = Database.pool(source, 3, "harness");
  }

  int port() {
    return postgres.getPort();
  }

  String version() throws SQLException {
    return Database.texts(direct, "show server_version").get(0);
  }

  /** Connections past the proxy, for the harness itself. */
  DataSource direct() {
    return direct;
  }

  /** Kills every server process at once and starts the server, which recovers from its log. */
  void crash() throws IOException, InterruptedException {
    pgCtl("stop", "-m", "immediate");
    forgetConnections();
  }

  /** Lets go of connections that are dead. */
  void forgetConnections() {
    direct.getHikariPoolMXBean().softEvictConnections();
  }

  void startAgain() throws IOException, InterruptedException {
    pgCtl("start", "-l", directory.resolve("server.log").toString());
  }

  private void pgCtl(String... arguments) throws IOException, InterruptedException {
    List<String> command = new ArrayList<>();
    if ("root".equals(System.getProperty("user.name"))) {
      command.addAll(List.of("unshare", "-U")); // PostgreSQL refuses to run as root
    }
    command.add(find("pg_ctl").toString());
    command.addAll(List.of("-w", "-t", "60", "-D", directory.resolve("data").toString()));
    command.addAll(List.of(arguments));
    if (arguments[0].equals("start")) {
      command.addAll(List.of("-o", options()));
    }
    Process process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(directory.resolve("pg_ctl.log").toFile())
            .start();
    if (process.waitFor() != 0) {
      throw new IOException(
          "pg_ctl "
              + arguments[0]
              + " failed: "
              + Files.readString(directory.resolve("pg_ctl.log")));
    }
  }

  /** The options the server was first started with, as it noted them itself. */
  private String options() throws IOException {
    Path noted = directory.resolve("postmaster.options");
    if (!Files.exists(noted)) {
      String line = Files.readString(directory.resolve("data").resolve("postmaster.opts")).strip();
      Files.writeString(noted, line.substring(line.indexOf(' ') + 1));
    }
    return Files.readString(noted);
  }

  private Path find(String binary) throws IOException {
    try (Stream<Path> files = Files.walk(directory.resolve("binaries"))) {
      return files
          .filter(file -> file.getFileName().toString().equals(binary))
          .findFirst()
          .orElseThrow(() -> new IOException("no " + binary + " among the server's binaries"));
    }
  }

  @Override
  public void close() throws IOException {
    direct.close();
    postgres.close();
  }
}
