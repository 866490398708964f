package dev.outbox4j.postgres.notify.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.NotificationSource.Listener;
import dev.outbox4j.spi.NotificationSource.Subscription;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** LISTEN through something that gives each statement another session of the server. */
@ExtendWith(PostgresExtension.class)
class SharedSessionIT {
  private static final String CHANNEL = "it's \\ a {channel}";

  private final TestDatabase database;

  SharedSessionIT(TestDatabase database) {
    this.database = database;
  }

  @Test
  void isToldAsDisconnectedWithTheReason() throws InterruptedException {
    assertThat(firstNews(2)).contains("this session does not listen").contains("pooler");
  }

  @Test
  void isConnectedIfTheSessionStaysTheSame() throws InterruptedException {
    assertThat(firstNews(1)).isEqualTo("connected");
  }

  private String firstNews(int sessions) throws InterruptedException {
    BlockingQueue<String> news = new LinkedBlockingQueue<>();
    ListenHub hub = new ListenHub(new Pooler(database, sessions), Probe.DEFAULT);
    try (Subscription subscription = hub.listen(CHANNEL, new News(news))) {
      return String.valueOf(news.poll(20, TimeUnit.SECONDS));
    }
  }

  private record News(BlockingQueue<String> news) implements Listener {
    @Override
    public void connected() {
      news.add("connected");
    }

    @Override
    public void notified(String payload) {}

    @Override
    public void disconnected(Throwable cause) {
      news.add(String.valueOf(cause.getMessage()));
    }
  }

  /** Uses its sessions in turn. */
  private record Pooler(TestDatabase database, int sessions) implements ListenDriver {
    @Override
    public String name() {
      return "pooler";
    }

    @Override
    public ListenConnection open(Consumer<String> onNotification, Duration limit)
        throws SQLException {
      Connection[] shared = new Connection[sessions];
      for (int i = 0; i < sessions; i++) {
        shared[i] = database.plain().getConnection();
      }
      return new Shared(shared);
    }
  }

  private static final class Shared implements ListenConnection {
    private final Connection[] sessions;
    private final EndSignal end = new EndSignal();
    private int uses;

    Shared(Connection[] sessions) {
      this.sessions = sessions;
    }

    @Override
    public void execute(String sql, Duration limit) throws SQLException {
      JdbcSession.execute(sessions[uses++ % sessions.length], sql, limit);
    }

    @Override
    public void await(Duration limit) throws Exception {
      end.await(limit);
    }

    @Override
    public void abort() {
      end.died(new ConnectionLostException("closed"));
    }

    @Override
    public void close() {
      for (Connection session : sessions) {
        try {
          session.close();
        } catch (SQLException e) {
          throw new IllegalStateException(e);
        }
      }
    }
  }
}
