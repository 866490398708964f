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
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntSupplier;

/**
 * The network between the processes and the server: it can be cut, black-holed and slowed, both
 * ways or one.
 */
final class FaultyProxy implements AutoCloseable {
  /** What the network does to bytes. */
  enum Weather {
    FINE,
    /** Connections are closed, at one end or both, and none is accepted. */
    CUT,
    /** Connections stay open and nothing gets through. */
    BLACK_HOLE,
    /** Every packet takes 50 ms longer. */
    SLOW
  }

  /** Which bytes it does it to. A cut one way is noticed at its far end only. */
  enum Way {
    TO_SERVER,
    FROM_SERVER,
    BOTH
  }

  /**
   * What the weather did since it turned: connections it closed, bytes it held, packets it slowed.
   */
  record Toll(long linksCut, long bytesHeld, long packetsSlowed) {}

  /** A client's connection and its continuation to the server. */
  private record Link(Socket client, Socket server) {
    void close() {
      closeQuietly(client);
      closeQuietly(server);
    }
  }

  private static final long SLOWNESS = TimeUnit.MILLISECONDS.toNanos(50);
  private static final long LOOK_AGAIN = TimeUnit.MILLISECONDS.toNanos(20);

  private final ServerSocket listener;
  private final IntSupplier target;
  private final Set<Link> links = ConcurrentHashMap.newKeySet();
  private final Set<Link> halves = ConcurrentHashMap.newKeySet();
  private final ExecutorService pumps =
      Executors.newCachedThreadPool(
          task -> {
            Thread thread = new Thread(task, "chaos-proxy");
            thread.setDaemon(true);
            return thread;
          });
  private final LongAdder linksCut = new LongAdder();
  private final LongAdder bytesHeld = new LongAdder();
  private final LongAdder packetsSlowed = new LongAdder();
  private volatile Weather weather = Weather.FINE;
  private volatile Way way = Way.BOTH;
  private volatile boolean closed;

  /**
   * @param target the port of the server, which may change
   */
  FaultyProxy(IntSupplier target) throws IOException {
    this.target = target;
    this.listener = new ServerSocket(0, 200, InetAddress.getLoopbackAddress());
    pumps.execute(this::accept);
  }

  int port() {
    return listener.getLocalPort();
  }

  /** Turns the weather, and counts what it does. */
  void turn(Weather next, Way nextWay) {
    way = nextWay;
    weather = next;
    if (next == Weather.CUT) {
      links.forEach(this::cut);
    }
  }

  /**
   * Makes the weather fine; what a cut left half open is closed. Returns what it did since then.
   */
  Toll heal() {
    weather = Weather.FINE;
    way = Way.BOTH;
    halves.forEach(Link::close);
    halves.clear();
    return new Toll(
        linksCut.sumThenReset(), bytesHeld.sumThenReset(), packetsSlowed.sumThenReset());
  }

  private void cut(Link link) {
    linksCut.increment();
    if (way == Way.BOTH) {
      link.close();
      return;
    }
    halves.add(link); // before the close, so that no pump takes it for an end of both
    closeQuietly(way == Way.TO_SERVER ? link.server() : link.client());
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
      awaitPassage(way, 0); // the handshake takes both ways
      if (weather == Weather.CUT) {
        client.close();
        return;
      }
      Link link = new Link(client, new Socket(InetAddress.getLoopbackAddress(), target.getAsInt()));
      client.setTcpNoDelay(true);
      link.server().setTcpNoDelay(true);
      links.add(link);
      if (weather == Weather.CUT) {
        link.close(); // the cut may have missed it
      }
      pumps.execute(() -> pump(link, client, link.server(), Way.TO_SERVER));
      pump(link, link.server(), client, Way.FROM_SERVER);
    } catch (IOException refused) {
      closeQuietly(client); // the client sees what a refused connection looks like
    }
  }

  private void pump(Link link, Socket from, Socket to, Way direction) {
    byte[] bytes = new byte[16 * 1024];
    try {
      InputStream in = from.getInputStream();
      OutputStream out = to.getOutputStream();
      for (int n = in.read(bytes); n >= 0; n = in.read(bytes)) {
        awaitPassage(direction, n);
        out.write(bytes, 0, n);
        out.flush();
      }
    } catch (IOException ended) {
      // either end closed, or the network was cut: both ends learn of it below
    } finally {
      links.remove(link);
      if (!halves.contains(link)) {
        link.close();
      }
    }
  }

  private void awaitPassage(Way direction, int bytes) {
    if (weather == Weather.SLOW && concerns(direction)) {
      packetsSlowed.increment();
      LockSupport.parkNanos(SLOWNESS);
    }
    if (weather == Weather.BLACK_HOLE && concerns(direction)) {
      bytesHeld.add(bytes);
    }
    while (weather == Weather.BLACK_HOLE && concerns(direction) && !closed) {
      LockSupport.parkNanos(LOOK_AGAIN);
    }
  }

  private boolean concerns(Way direction) {
    Way now = way;
    return now == Way.BOTH || now == direction;
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
    links.forEach(Link::close);
    halves.forEach(Link::close);
    pumps.shutdownNow();
  }
}
