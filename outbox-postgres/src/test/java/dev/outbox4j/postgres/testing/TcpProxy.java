package dev.outbox4j.postgres.testing;

import java.io.Closeable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A network path to a server that a test can break. Listens on a port of its own of the loopback
 * interface, the same one for its whole life. Thread-safe.
 */
public final class TcpProxy implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(TcpProxy.class);
  private static final int BUFFER_BYTES = 64 * 1024;
  private static final Duration BIND_LIMIT = Duration.ofSeconds(10);

  private enum Mode {
    FORWARD,
    BLACKHOLE,
    CUT,
    CLOSED
  }

  private final String targetHost;
  private final int targetPort;
  private final int port;
  private final Set<Socket> open = ConcurrentHashMap.newKeySet();
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();

  // guarded by lock
  private Mode mode = Mode.FORWARD;
  private long bytesUntilBlackhole = Long.MAX_VALUE;
  private Closeable holder;

  /** Forwards to the server at once. */
  public TcpProxy(String targetHost, int targetPort) {
    this.targetHost = targetHost;
    this.targetPort = targetPort;
    ServerSocket server = bind(0);
    this.holder = server;
    this.port = server.getLocalPort();
    accept(server);
  }

  /** Returns the address to connect to. */
  public String host() {
    return InetAddress.getLoopbackAddress().getHostAddress();
  }

  /** Returns the port to connect to. */
  public int port() {
    return port;
  }

  /** Returns how many client connections are open. */
  public long connections() {
    return open.stream().filter(socket -> socket.getLocalPort() == port).count();
  }

  /** Closes all connections; new ones are refused until {@link #resume}. */
  public void cut() {
    lock.lock();
    try {
      if (mode != Mode.CUT) {
        mode = Mode.CUT;
        close(holder);
        closeConnections();
        holder = reserve();
        changed.signalAll();
      }
    } finally {
      lock.unlock();
    }
  }

  /**
   * Stops forwarding both ways without closing anything. New connections are accepted and nothing
   * is forwarded on them either. What was sent meanwhile arrives after {@link #resume}.
   */
  public void blackhole() {
    setMode(Mode.BLACKHOLE);
  }

  /** Falls silent as {@link #blackhole}, once so many more bytes have come from the server. */
  public void blackholeAfter(long bytes) {
    lock.lock();
    try {
      bytesUntilBlackhole = bytes;
    } finally {
      lock.unlock();
    }
  }

  /** Forwards again, as at the beginning. */
  public void resume() {
    lock.lock();
    try {
      bytesUntilBlackhole = Long.MAX_VALUE;
      if (mode == Mode.CUT) {
        close(holder);
        ServerSocket server = bind(port);
        holder = server;
        accept(server);
      }
      mode = Mode.FORWARD;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  @Override
  public void close() {
    lock.lock();
    try {
      mode = Mode.CLOSED;
      close(holder);
      closeConnections();
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  private void setMode(Mode next) {
    lock.lock();
    try {
      mode = next;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  private void accept(ServerSocket server) {
    start(
        "accept",
        () -> {
          while (!server.isClosed()) {
            Socket client = server.accept();
            open.add(client);
            start("connect", () -> connect(client));
          }
        });
  }

  private void connect(Socket client) throws IOException {
    Socket server = new Socket();
    open.add(server);
    try {
      awaitForward();
      server.connect(new InetSocketAddress(targetHost, targetPort));
      client.setTcpNoDelay(true);
      server.setTcpNoDelay(true);
    } catch (IOException e) {
      close(client, server);
      throw e;
    }
    start("up", () -> pump(client, server, false));
    start("down", () -> pump(server, client, true));
  }

  private void pump(Socket from, Socket to, boolean fromServer) throws IOException {
    byte[] buffer = new byte[BUFFER_BYTES];
    try {
      for (int read = from.getInputStream().read(buffer);
          read >= 0;
          read = from.getInputStream().read(buffer)) {
        int first = fromServer ? takeAllowance(read) : 0;
        to.getOutputStream().write(buffer, 0, first);
        awaitForward();
        to.getOutputStream().write(buffer, first, read - first);
      }
    } finally {
      close(from, to);
    }
  }

  private int takeAllowance(int bytes) {
    lock.lock();
    try {
      if (mode != Mode.FORWARD) {
        return 0;
      }
      if (bytesUntilBlackhole == Long.MAX_VALUE) {
        return bytes;
      }
      int allowed = (int) Math.min(bytes, bytesUntilBlackhole);
      bytesUntilBlackhole -= allowed;
      if (bytesUntilBlackhole == 0) {
        mode = Mode.BLACKHOLE;
      }
      return allowed;
    } finally {
      lock.unlock();
    }
  }

  private void awaitForward() throws IOException {
    lock.lock();
    try {
      while (mode == Mode.BLACKHOLE) {
        changed.awaitUninterruptibly();
      }
      if (mode != Mode.FORWARD) {
        throw new IOException("The proxy was cut");
      }
    } finally {
      lock.unlock();
    }
  }

  /** Binds the port without listening: connections are refused, and nobody else gets the port. */
  private Socket reserve() {
    return retry(
        () -> {
          Socket socket = new Socket();
          socket.setReuseAddress(true);
          socket.bind(new InetSocketAddress(host(), port));
          return socket;
        });
  }

  private static ServerSocket bind(int port) {
    return retry(
        () -> {
          ServerSocket server = new ServerSocket();
          server.setReuseAddress(true);
          server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 200);
          return server;
        });
  }

  private interface Attempt<T> {
    T run() throws IOException;
  }

  private static <T> T retry(Attempt<T> attempt) {
    long deadline = System.nanoTime() + BIND_LIMIT.toNanos();
    while (true) {
      try {
        return attempt.run();
      } catch (IOException e) {
        // a thread that was accepting holds the port for an instant after the close
        if (System.nanoTime() > deadline) {
          throw new UncheckedIOException(e);
        }
        LockSupport.parkNanos(1_000_000);
      }
    }
  }

  private void closeConnections() {
    for (Socket socket : open) {
      close(socket);
    }
  }

  private void close(Closeable... resources) {
    for (Closeable resource : resources) {
      open.remove(resource);
      try {
        resource.close();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  private interface Work {
    void run() throws IOException;
  }

  private void start(String what, Work work) {
    Thread thread =
        new Thread(
            () -> {
              try {
                work.run();
              } catch (IOException e) {
                LOG.debug("A connection through the proxy has ended", e);
              }
            },
            "proxy-" + port + "-" + what);
    thread.setDaemon(true);
    thread.start();
  }
}
