package dev.outbox4j.examples.chaos;

import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * PgBouncer in transaction mode between one subscriber's pool and the proxy, if it is installed.
 */
final class Pooler implements AutoCloseable {
  /** So many to the server. */
  static final int CONNECTIONS = 8;

  private final Process process;
  private final int port;

  private Pooler(Process process, int port) {
    this.process = process;
    this.port = port;
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
            auth_file = %s
            pool_mode = transaction
            default_pool_size = %d
            server_login_retry = 1
            query_timeout = 10
            ignore_startup_parameters = extra_float_digits
            """
                .formatted(target, port, users, CONNECTIONS));
    List<String> command = new ArrayList<>();
    if ("root".equals(System.getProperty("user.name"))) {
      command.addAll(List.of("unshare", "-U")); // it refuses to run as root
    }
    command.addAll(List.of(binary.toString(), "-q", config.toString()));
    File log = directory.resolve("pooler.log").toFile();
    Process process =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log).start();
    if (!listens(process, port)) {
      process.destroyForcibly();
      return null;
    }
    return new Pooler(process, port);
  }

  private static boolean listens(Process process, int port) throws InterruptedException {
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

  void signal(String signal) throws IOException, InterruptedException {
    Signals.send(signal, process.pid(), "the pooler");
  }

  @Override
  public void close() {
    process.destroyForcibly();
  }
}
