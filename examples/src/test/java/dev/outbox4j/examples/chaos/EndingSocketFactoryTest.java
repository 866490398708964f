package dev.outbox4j.examples.chaos;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What pgjdbc does with a row that a lost connection cut off. */
@Timeout(value = 20, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class EndingSocketFactoryTest {

  @Test
  void whatIsSkippedBeyondTheEndFails() throws IOException {
    try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        Socket client = new EndingSocketFactory().createSocket()) {
      client.connect(server.getLocalSocketAddress());
      try (Socket accepted = server.accept();
          OutputStream out = accepted.getOutputStream()) {
        out.write(new byte[] {1, 2, 3, 4});
      }
      InputStream in = client.getInputStream();

      assertThat(in.read()).isEqualTo(1);
      assertThatThrownBy(() -> skipAsTheDriverDoes(in, 1_000)).isInstanceOf(EOFException.class);
    }
  }

  @Test
  void whatIsThereIsSkipped() throws IOException {
    try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        Socket client = new EndingSocketFactory().createSocket()) {
      client.connect(server.getLocalSocketAddress());
      try (Socket accepted = server.accept();
          OutputStream out = accepted.getOutputStream()) {
        out.write(new byte[] {1, 2, 3, 4});
        InputStream in = client.getInputStream();
        skipAsTheDriverDoes(in, 3);

        assertThat(in.read()).isEqualTo(4);
      }
    }
  }

  private static void skipAsTheDriverDoes(InputStream in, int bytes) throws IOException {
    for (long skipped = 0; skipped < bytes; ) {
      skipped += in.skip(bytes - skipped);
    }
  }
}
