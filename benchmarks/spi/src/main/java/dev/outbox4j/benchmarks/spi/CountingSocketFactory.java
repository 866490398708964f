package dev.outbox4j.benchmarks.spi;

import java.io.FilterInputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.util.concurrent.atomic.AtomicLong;
import javax.net.SocketFactory;

/**
 * Sockets that count what a PostgreSQL driver sends: statements, by the Execute and Query messages
 * of the <a
 * href="https://www.postgresql.org/docs/current/protocol-message-formats.html">protocol</a>, and
 * round trips, by each first read after a write. So every driver and library is counted alike,
 * begin and commit included. Works without TLS only.
 */
public final class CountingSocketFactory extends SocketFactory {
  private static final AtomicLong STATEMENTS = new AtomicLong();
  private static final AtomicLong ROUND_TRIPS = new AtomicLong();

  /** Made by the driver. */
  public CountingSocketFactory() {}

  /** {@return statements sent by this process so far} */
  public static long statements() {
    return STATEMENTS.get();
  }

  /** {@return times that this process waited for the server so far} */
  public static long roundTrips() {
    return ROUND_TRIPS.get();
  }

  @Override
  public Socket createSocket() {
    return new CountingSocket();
  }

  @Override
  public Socket createSocket(String host, int port) throws IOException {
    throw new IOException("only unconnected sockets are made");
  }

  @Override
  public Socket createSocket(String host, int port, InetAddress local, int localPort)
      throws IOException {
    throw new IOException("only unconnected sockets are made");
  }

  @Override
  public Socket createSocket(InetAddress host, int port) throws IOException {
    throw new IOException("only unconnected sockets are made");
  }

  @Override
  public Socket createSocket(InetAddress host, int port, InetAddress local, int localPort)
      throws IOException {
    throw new IOException("only unconnected sockets are made");
  }

  private static final class CountingSocket extends Socket {
    private volatile boolean written;

    @Override
    public OutputStream getOutputStream() throws IOException {
      return new CountingOutput(super.getOutputStream());
    }

    @Override
    public InputStream getInputStream() throws IOException {
      return new CountingInput(super.getInputStream());
    }

    private final class CountingInput extends FilterInputStream {
      CountingInput(InputStream in) {
        super(in);
      }

      @Override
      public int read() throws IOException {
        count();
        return in.read();
      }

      @Override
      public int read(byte[] bytes, int offset, int length) throws IOException {
        count();
        return in.read(bytes, offset, length);
      }

      private void count() {
        if (written) {
          written = false;
          ROUND_TRIPS.incrementAndGet();
        }
      }
    }

    private final class CountingOutput extends FilterOutputStream {
      private final byte[] header = new byte[5];
      // the first message of a connection has no type byte
      private int filled = 1;
      private long toSkip;

      CountingOutput(OutputStream out) {
        super(out);
      }

      @Override
      public void write(int b) throws IOException {
        write(new byte[] {(byte) b}, 0, 1);
      }

      @Override
      public void write(byte[] bytes, int offset, int length) throws IOException {
        scan(bytes, offset, length);
        written = true;
        out.write(bytes, offset, length);
      }

      private void scan(byte[] bytes, int offset, int length) {
        int at = offset;
        int end = offset + length;
        while (at < end) {
          if (toSkip > 0) {
            int step = (int) Math.min(toSkip, end - at);
            toSkip -= step;
            at += step;
            continue;
          }
          header[filled++] = bytes[at++];
          if (filled == header.length) {
            message();
          }
        }
      }

      private void message() {
        int size =
            (header[1] & 0xff) << 24
                | (header[2] & 0xff) << 16
                | (header[3] & 0xff) << 8
                | (header[4] & 0xff);
        if (header[0] == 'E' || header[0] == 'Q') {
          STATEMENTS.incrementAndGet();
        }
        toSkip = size - 4L;
        filled = 0;
      }
    }
  }
}
