package dev.outbox4j.examples.chaos;

import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;
import org.postgresql.jdbc.PreferQueryMode;

/**
 * PgBouncer in transaction mode between one subscriber's pool and the proxy, if it is installed.
 */
final class Pooler implements AutoCloseable {
  /** So many to the server. */
  static final int CONNECTIONS = 24;

  private final List<String> command;
  private final File log;
  private final int port;
  private Process process;

  private Pooler(List<String> command, File log, int port) throws IOException {
    this.command = command;
    this.log = log;
    this.port = port;
    this.process = start();
  }

  private Process start() throws IOException {
    return new ProcessBuilder(command)
        .redirectErrorStream(true)
        .redirectOutput(ProcessBuilder.Redirect.appendTo(log))
        .start();
  }

  /** Returns null if it is not installed, or does not run here. */
  static @Nullable Pooler startIfInstalled(Path directory, int target)
      throws IOException, InterruptedException {
    Path binary = Path.of("/usr/sbin/pgbouncer");
    if (!Files.isExecutable(binary)) {
      return null;
    }
    int port;
    try (ServerSocket probe = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      port = probe.getLocalPort();
    }
    Path users = Files.writeString(directory.resolve("pooler-users.txt"), "\"postgres\" \"\"\n");
    Path config =
        Files.writeString(
            directory.resolve("pooler.ini"),
            """
            [databases]
            postgres = host=127.0.0.1 port=%d dbname=postgres user=postgres
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = %d
            unix_socket_dir =
            auth_type = trust
            admin_users = postgres
            auth_file = %s
            pool_mode = transaction
            default_pool_size = %d
            server_login_retry = 0.3
            query_timeout = 10
            ignore_startup_parameters = extra_float_digits,replication
            """
                .formatted(target, port, users, CONNECTIONS));
    List<String> command = new ArrayList<>();
    if ("root".equals(System.getProperty("user.name"))) {
      command.addAll(List.of("unshare", "-U")); // it refuses to run as root
    }
    command.addAll(List.of(binary.toString(), "-q", config.toString()));
    Pooler pooler = new Pooler(command, directory.resolve("pooler.log").toFile(), port);
    if (!pooler.listens()) {
      pooler.close();
      return null;
    }
    return pooler;
  }

  private boolean listens() throws InterruptedException {
    for (int i = 0; i < 100 && process.isAlive(); i++) {
      try {
        new Socket(InetAddress.getLoopbackAddress(), port).close();
        return true;
      } catch (IOException notYet) {
        TimeUnit.MILLISECONDS.sleep(100);
      }
    }
    return false;
  }

  int port() {
    return port;
  }

  long pid() {
    return process.pid();
  }

  void kill() throws InterruptedException {
    process.destroyForcibly().waitFor();
  }

  void startAgain() throws IOException, InterruptedException {
    process = start();
    if (!listens()) {
      throw new IOException("the pooler does not start again");
    }
  }

  /** Has it give up its connections to the server, as who moves a server tells it to. */
  void reconnect() throws SQLException {
    PGSimpleDataSource console = Database.at(port);
    console.setDatabaseName("pgbouncer");
    console.setPreferQueryMode(PreferQueryMode.SIMPLE);
    console.setReplication(
        "database"); // by which the driver sets nothing: the console refuses that
    try (Connection connection = console.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("reconnect");
    }
  }

  void signal(String signal) throws IOException, InterruptedException {
    Signals.send(signal, process.pid(), "the pooler");
  }

  @Override
  public void close() {
    process.destroyForcibly();
  }
}
