package dev.outbox4j.examples.chaos;

import com.zaxxer.hikari.HikariDataSource;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * A durable PostgreSQL of the harness's own: it can be crashed, moved to another port, and give way
 * to a replica. It has two ports, one of which is the primary's.
 */
final class Server implements AutoCloseable {
  static final String REPLICA = "replica";

  private static final String SETTINGS =
      """

      max_connections = 300
      shared_buffers = 256MB
      max_wal_size = 4GB
      work_mem = 64MB # for the sums at the end
      fsync = on
      synchronous_commit = on
      """;

  /** What the server may do to sessions must not happen to the harness's own. */
  private static final String NO_TIMEOUTS =
      "-c statement_timeout=0 -c lock_timeout=0 -c idle_session_timeout=0"
          + " -c idle_in_transaction_session_timeout=0";

  private final Path directory;
  private final List<Integer> ports;
  private final HikariDataSource direct;
  private volatile Instance primary;
  private @Nullable Instance other;
  private int copies;

  Server(Path directory) throws IOException, InterruptedException {
    this.directory = directory;
    this.ports = freePorts();
    Path data = directory.resolve("data");
    Path binaries = directory.resolve("binaries");
    EmbeddedPostgres.builder() // unpacks the binaries and makes the data directory
        .setOverrideWorkingDirectory(binaries.toFile())
        .setDataDirectory(data)
        .setCleanDataDirectory(false)
        .setPGStartupWait(Duration.ofSeconds(60))
        .start()
        .close();
    Files.writeString(data.resolve("postgresql.conf"), SETTINGS, StandardOpenOption.APPEND);
    this.primary = new Instance(binariesIn(binaries), data, ports.get(0));
    primary.start();
    PGSimpleDataSource source = Database.retrying(ports());
    source.setSocketTimeout(600); // the sums at the end take long
    source.setPrepareThreshold(0); // a plan kept from when the ledger was small would scan it
    source.setOptions(NO_TIMEOUTS);
    this.direct = Database.pool(source, 4, "harness");
    Runtime.getRuntime().addShutdownHook(new Thread(this::stopAll, "chaos-server-stop"));
  }

  private static List<Integer> freePorts() throws IOException {
    try (ServerSocket one = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        ServerSocket two = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return List.of(one.getLocalPort(), two.getLocalPort());
    }
  }

  private static Path binariesIn(Path directory) throws IOException {
    try (Stream<Path> files = Files.walk(directory)) {
      return files
          .filter(file -> Files.exists(file.resolve("pg_ctl")))
          .findFirst()
          .orElseThrow(() -> new IOException("no pg_ctl among the server's binaries"));
    }
  }

  /** The port behind the server's name: another one after a move or a promotion. */
  int port() {
    return primary.port();
  }

  /** Both ports, for those who find the primary by themselves. */
  String ports() {
    return ports.get(0) + "," + ports.get(1);
  }

  Path data() {
    return primary.data();
  }

  String version() throws SQLException {
    return Database.texts(direct, "show server_version").get(0);
  }

  /** Connections past the proxy, for the harness itself. */
  DataSource direct() {
    return direct;
  }

  /** Kills every server process at once: at its next start the server recovers from its log. */
  void crash() throws IOException, InterruptedException {
    primary.stop("immediate");
    forgetConnections();
  }

  /** Ends all sessions, writes a checkpoint and stops. */
  void shutDown() throws IOException, InterruptedException {
    primary.stop("fast");
    forgetConnections();
  }

  /** Lets go of connections that are dead. */
  void forgetConnections() {
    direct.getHikariPoolMXBean().softEvictConnections();
  }

  void startAgain() throws IOException, InterruptedException {
    primary.start();
  }

  void startAgain(Map<String, String> environment) throws IOException, InterruptedException {
    primary.start(environment);
  }

  /** Has the server, which is not running, start behind its other port. */
  void moveToOtherPort() {
    primary = primary.at(otherPort());
  }

  private int otherPort() {
    return ports.get(0) == primary.port() ? ports.get(1) : ports.get(0);
  }

  /** Starts a replica of the server behind the other port. */
  void startReplica() throws IOException, InterruptedException, SQLException {
    Path copy = directory.resolve("data-" + ++copies);
    BaseBackup.copy(direct, primary, copy, REPLICA);
    Instance replica = primary.beside(copy, otherPort());
    replica.start();
    other = replica;
  }

  /** Makes the replica the primary; the former one, which is not stopped, is the other one then. */
  void promoteReplica() throws IOException, InterruptedException {
    Instance former = primary;
    Instance replica = other;
    if (replica == null) {
      throw new IllegalStateException("there is no replica");
    }
    replica.promote();
    primary = replica;
    other = former;
    forgetConnections();
  }

  /** Connections to the server that is not the primary. */
  DataSource former() {
    return Database.at(otherPort());
  }

  /** Stops the server that is not the primary, if there is one, and removes its data. */
  void removeOther() throws IOException, InterruptedException {
    if (other != null) {
      if (other.running()) {
        other.stop("immediate");
      }
      other.delete();
      other = null;
    }
  }

  /** Also when the run is broken off. */
  private void stopAll() {
    for (Instance instance : other == null ? List.of(primary) : List.of(primary, other)) {
      try {
        if (instance.running()) {
          instance.stop("immediate");
        }
      } catch (IOException | InterruptedException notStopped) {
        Report.say("a server was left behind: " + notStopped.getMessage());
      }
    }
  }

  @Override
  public void close() {
    direct.close();
    stopAll();
  }
}
