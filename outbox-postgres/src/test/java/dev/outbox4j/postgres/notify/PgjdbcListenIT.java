package dev.outbox4j.postgres.notify;

import static dev.outbox4j.postgres.notify.RecordingListener.DOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.NotificationSource;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;

class PgjdbcListenIT extends ListenFaultContract {
  PgjdbcListenIT(TestDatabase database) {
    super(database);
  }

  @Override
  NotificationSource source(Endpoint endpoint) {
    return PgjdbcListen.on(dataSource(endpoint));
  }

  @Override
  NotificationSource source(Endpoint endpoint, Duration interval, Duration timeout) {
    return PgjdbcListen.on(dataSource(endpoint)).probe(interval, timeout);
  }

  @Test
  void refusesAPool() {
    HikariDataSource pool = database.pool(1);
    assertThatThrownBy(() -> PgjdbcListen.on(pool))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("unpooled")
        .hasMessageContaining("com.zaxxer.hikari.HikariDataSource")
        .hasMessageContaining("org.postgresql.ds.PGSimpleDataSource");
  }

  @Test
  void refusesAPoolInsideAWrapper() {
    DataSource wrapper = proxyOf(database.pool(1));
    assertThatThrownBy(() -> PgjdbcListen.on(wrapper))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("unpooled");
  }

  @Test
  void reportsADataSourceThatTurnsOutToHideThePoolAndGivesItsConnectionBack() {
    HikariDataSource pool = database.pool(1);
    DataSource lending =
        (DataSource)
            Proxy.newProxyInstance(
                DataSource.class.getClassLoader(),
                new Class<?>[] {DataSource.class},
                (proxy, method, arguments) ->
                    method.getName().equals("getConnection") ? pool.getConnection() : false);
    RecordingListener listener = new RecordingListener();
    listen(PgjdbcListen.on(lending), channel("a"), listener).close();
    RecordingListener second = new RecordingListener();
    listen(PgjdbcListen.on(lending), channel("b"), second);
    await().atMost(SOON).untilAsserted(() -> assertThat(second.changes()).containsExactly(DOWN));
    assertThat(second.causes().get(0)).hasMessageContaining("unpooled");
    await().atMost(SOON).until(() -> pool.getHikariPoolMXBean().getActiveConnections() == 0);
  }

  @Test
  void leavesTheDataSourceAsItWas() {
    PGSimpleDataSource source = database.plain();
    listening(PgjdbcListen.on(source), channel("a"));
    assertThat(source.getSocketTimeout()).isZero();
    assertThat(source.getTcpKeepAlive()).isFalse();
  }

  @Test
  void listensInAutocommitWhateverTheDataSourceGives() {
    PGSimpleDataSource inTransactions =
        new PGSimpleDataSource() {
          @Override
          public java.sql.Connection getConnection() throws java.sql.SQLException {
            java.sql.Connection connection = super.getConnection();
            connection.setAutoCommit(false);
            return connection;
          }
        };
    Endpoint endpoint = Endpoint.of(database);
    fill(inTransactions, endpoint);
    RecordingListener listener = listening(PgjdbcListen.on(inTransactions), channel("a"));
    fence(listener, channel("a"));
    assertThat(listener.payloads()).containsExactly("fence");
  }

  private static DataSource proxyOf(DataSource target) {
    return (DataSource)
        Proxy.newProxyInstance(
            PgjdbcListenIT.class.getClassLoader(),
            new Class<?>[] {DataSource.class},
            (proxy, method, arguments) -> {
              try {
                return method.invoke(target, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  private static PGSimpleDataSource dataSource(Endpoint endpoint) {
    return fill(new PGSimpleDataSource(), endpoint);
  }

  private static PGSimpleDataSource fill(PGSimpleDataSource source, Endpoint endpoint) {
    source.setServerNames(new String[] {endpoint.host()});
    source.setPortNumbers(new int[] {endpoint.port()});
    source.setDatabaseName(endpoint.database());
    source.setUser(endpoint.user());
    source.setPassword(endpoint.password());
    return source;
  }
}
