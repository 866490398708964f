package dev.outbox4j.postgres.notify;

import dev.outbox4j.postgres.testing.TcpProxy;
import dev.outbox4j.postgres.testing.TestDatabase;

/** Where and as whom a source connects. */
record Endpoint(String host, int port, String database, String user, String password) {

  static Endpoint of(TestDatabase database) {
    return new Endpoint(
        database.server().host(),
        database.server().port(),
        database.name(),
        database.server().user(),
        database.server().password());
  }

  Endpoint through(TcpProxy proxy) {
    return new Endpoint(proxy.host(), proxy.port(), database, user, password);
  }

  Endpoint as(String otherUser, String otherPassword) {
    return new Endpoint(host, port, database, otherUser, otherPassword);
  }
}
