package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** The network between the processes and the server: it can be cut, black-holed and slowed. */
final class FaultyProxy implements AutoCloseable {
  /** What the network does to bytes, both ways. */
  enum Weather {
    FINE,
    /** Connections are closed and none is accepted. */
    CUT,
    /** Connections stay open and nothing gets through. */
    BLACK_HOLE,
    /** Every packet takes 50 ms longer. */
    SLOW
  }

  private static final long SLOWNESS = TimeUnit.MILLISECONDS.toNanos(50);
  private static final long LOOK_AGAIN = TimeUnit.MILLISECONDS.toNanos(20);

  private final ServerSocket listener;
  private final int target;
  private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
  private final ExecutorService pumps =
      Executors.newCachedThreadPool(
          task -> {
            Thread thread = new Thread(task, "chaos-proxy");
            thread.setDaemon(true);
            return thread;
          });
  private volatile Weather weather = Weather.FINE;
  private volatile boolean closed;

  FaultyProxy(int target) throws IOException {
    this.target = target;
    this.listener = new ServerSocket(0, 200, InetAddress.getLoopbackAddress());
    pumps.execute(this::accept);
  }

  int port() {
    return listener.getLocalPort();
  }

  void turn(Weather next) {
    weather = next;
    if (next == Weather.CUT) {
      sockets.forEach(FaultyProxy::closeQuietly);
      sockets.clear();
    }
  }

  private void accept() {
    while (!closed) {
      try {
        Socket client = listener.accept();
        pumps.execute(() -> join(client));
      } catch (IOException ended) {
        if (!closed) {
          LockSupport.parkNanos(LOOK_AGAIN);
        }
      }
    }
  }

  private void join(Socket client) {
    try {
      awaitPassage();
      if (weather == Weather.CUT) {
        client.close();
        return;
      }
      Socket server = new Socket(InetAddress.getLoopbackAddress(), target);
      client.setTcpNoDelay(true);
      server.setTcpNoDelay(true);
      sockets.add(client);
      sockets.add(server);
      pumps.execute(() -> pump(client, server));
      pump(server, client);
    } catch (IOException refused) {
      closeQuietly(client); // the client sees what a refused connection looks like
    }
  }

  private void pump(Socket from, Socket to) {
    byte[] bytes = new byte[16 * 1024];
    try (InputStream in = from.getInputStream();
        OutputStream out = to.getOutputStream()) {
      for (int n = in.read(bytes); n >= 0; n = in.read(bytes)) {
        awaitPassage();
        out.write(bytes, 0, n);
        out.flush();
      }
    } catch (IOException ended) {
      // either end closed, or the network was cut: both ends learn of it below
    } finally {
      closeQuietly(from);
      closeQuietly(to);
      sockets.remove(from);
      sockets.remove(to);
    }
  }

  private void awaitPassage() {
    if (weather == Weather.SLOW) {
      LockSupport.parkNanos(SLOWNESS);
    }
    while (weather == Weather.BLACK_HOLE && !closed) {
      LockSupport.parkNanos(LOOK_AGAIN);
    }
  }

  private static void closeQuietly(Socket socket) {
    try {
      socket.close();
    } catch (IOException alreadyGone) {
      // closing is all that was wanted
    }
  }

  @Override
  public void close() throws IOException {
    closed = true;
    listener.close();
    sockets.forEach(FaultyProxy::closeQuietly);
    pumps.shutdownNow();
  }
}
