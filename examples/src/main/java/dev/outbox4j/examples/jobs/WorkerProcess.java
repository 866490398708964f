package dev.outbox4j.examples.jobs;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.examples.run.ExampleDatabase;
import dev.outbox4j.job.JobQueue;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import java.io.IOException;
import java.net.URI;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * A process that runs jobs until its input ends, as it does when the process that has started it
 * ends.
 */
final class WorkerProcess {
  private WorkerProcess() {}

  /**
   * Runs it.
   *
   * @param args the database's URL and user, and the URL of the analysis service; the password is
   *     in the environment, where not every user of the machine could read it
   * @throws IOException if its input cannot be read
   */
  public static void main(String[] args) throws IOException {
    PGSimpleDataSource unpooled = new PGSimpleDataSource();
    unpooled.setUrl(args[0]);
    unpooled.setUser(args[1]);
    unpooled.setPassword(System.getenv(RestartedWorker.PASSWORD));
    Analyst analyst = new CrashingAnalyst(new TasteApi(URI.create(args[2])));
    try (HikariDataSource pool = ExampleDatabase.pool(unpooled, TasteQueue.CONNECTIONS);
        JobQueue queue =
            TasteQueue.define(
                    PostgresOutbox.on(pool, OutboxTable.named("outbox")),
                    Jackson2Codec.standard(),
                    TasteTimes.brief())
                .onTransactional(TasteQueue.ANALYSIS, new TasteHandler(analyst)::handle)
                .listen(PgjdbcListen.on(unpooled))
                .build()) {
      queue.start();
      while (System.in.read() >= 0) {
        // whoever has started it writes nothing
      }
    }
  }
}
