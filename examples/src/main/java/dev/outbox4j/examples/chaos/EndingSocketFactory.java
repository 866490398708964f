package dev.outbox4j.examples.chaos;

import java.io.EOFException;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import javax.net.SocketFactory;

// tag::ending
/** For pgjdbc behind PgBouncer: what is skipped beyond the end of a connection ends it. */
public class EndingSocketFactory extends SocketFactory {
  @Override
  public Socket createSocket() {
    return new Socket() {
      @Override
      public InputStream getInputStream() throws IOException {
        return new Ending(super.getInputStream());
      }
    };
  }

  private static final class Ending extends FilterInputStream {
    Ending(InputStream in) {
      super(in);
    }

    @Override
    public long skip(long bytes) throws IOException {
      if (bytes <= 0) {
        return 0;
      }
      long skipped = in.skip(bytes);
      if (skipped == 0 && in.read() < 0) {
        throw new EOFException("the connection has ended");
      }
      return Math.max(1, skipped);
    }
  }

  @Override
  public Socket createSocket(String host, int port) {
    throw connectsByItself();
  }

  @Override
  public Socket createSocket(String host, int port, InetAddress local, int localPort) {
    throw connectsByItself();
  }

  @Override
  public Socket createSocket(InetAddress host, int port) {
    throw connectsByItself();
  }

  @Override
  public Socket createSocket(InetAddress host, int port, InetAddress local, int localPort) {
    throw connectsByItself();
  }

  private static UnsupportedOperationException connectsByItself() {
    return new UnsupportedOperationException("pgjdbc connects by itself");
  }
}
// end::ending
