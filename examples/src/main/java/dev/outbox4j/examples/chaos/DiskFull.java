package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.Tally.Count;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;

/**
 * The outbox is on a small volume of its own for a while, which is filled to the last block. That
 * the disk of the log is full needs no fault of its own: the server crashes then.
 */
final class DiskFull {
  private static final String NO_ROOM = "53100";
  private static final long FREE_BYTES = 16 * 1024 * 1024;

  private final Scene scene;
  private int volumes;

  DiskFull(Scene scene) {
    this.scene = scene;
  }

  /** Tries whether a volume can be mounted here: not even root may do so everywhere. */
  static boolean possible(Path directory) throws IOException, InterruptedException {
    Path volume = Files.createDirectory(directory.resolve("trial-volume"));
    try {
      mount(volume, FREE_BYTES);
      command("umount", volume.toString());
      return true;
    } catch (IOException refused) {
      return false;
    }
  }

  private static void mount(Path volume, long bytes) throws IOException, InterruptedException {
    command(
        "mount", "-t", "tmpfs", "-o", "mode=700,size=" + bytes, "outbox-chaos", volume.toString());
  }

  Episode run() throws IOException, InterruptedException, SQLException {
    Map<Count, Long> before = scene.fleet().tally();
    Evidence evidence = new Evidence();
    Path volume = scene.server().data().resolveSibling("volume-" + ++volumes);
    Recovery recovery;
    try {
      scene.deeds().act(() -> moveTo(volume));
      scene.deeds().act(() -> evidence.sign("extensions_refused", fill()));
      Watch.pause(Fault.Length.LONG.time());
      scene.deeds().act(() -> evidence.sign("extensions_refused", extend(1)));
      scene.deeds().act(() -> scene.update("drop table ballast"));
      recovery = scene.recovery();
      scene.deeds().act(this::moveBack);
    } finally {
      scene.deeds().act(() -> command("umount", "-l", volume.toString()));
    }
    scene.watch().untilAllAreWell(scene.watch().since()); // the way back locks the table
    evidence.sign("extensions_refused", 0); // at least
    scene.addCounts(evidence, before, Count.REFUSED_FOR_WANT_OF_ROOM);
    return new Episode(recovery, evidence);
  }

  /** No free page comes along. */
  private void moveTo(Path volume) throws IOException, InterruptedException, SQLException {
    vacuumFull();
    long bytes = scene.number("select pg_total_relation_size('outbox')") + FREE_BYTES;
    Files.createDirectory(
        volume, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    mount(volume, bytes);
    scene.update("create tablespace small location '" + volume + "'");
    moveTo("small");
    scene.update("create table ballast (filler text) tablespace small");
    scene.update("alter table ballast alter filler set storage plain");
  }

  private void vacuumFull() throws SQLException {
    endLateTransactions();
    scene.update("vacuum full outbox");
  }

  private void moveTo(String tablespace) throws SQLException {
    endLateTransactions();
    scene.update("alter table outbox set tablespace " + tablespace);
    for (String index :
        scene.texts("select indexname from pg_indexes where tablename = 'outbox'")) {
      endLateTransactions();
      scene.update("alter index " + index + " set tablespace " + tablespace);
    }
  }

  /** They would make the move wait, and all others behind it. */
  private void endLateTransactions() throws SQLException {
    scene.texts(
        "select pg_terminate_backend(pid)::text from pg_stat_activity"
            + " where state = 'idle in transaction' and application_name like 'publisher-%'");
  }

  /** Returns how often the server said that there is no room: once for many rows, once for one. */
  private long fill() throws SQLException {
    return extend(1_000) + extend(1);
  }

  /** Adds rows of a block each until the server refuses. */
  private long extend(int rows) throws SQLException {
    while (true) {
      try {
        scene.update(
            "insert into ballast select repeat('x', 8000) from generate_series(1, " + rows + ")");
      } catch (SQLException refusal) {
        if (NO_ROOM.equals(refusal.getSQLState())) {
          return 1;
        }
        throw refusal;
      }
    }
  }

  private void moveBack() throws SQLException {
    moveTo("pg_default");
    scene.update("drop tablespace small");
    scene.update("checkpoint"); // a recovery must not look for the volume
  }

  private static void command(String... command) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (process.waitFor() != 0) {
      throw new IOException(List.of(command) + " failed: " + said);
    }
  }
}
