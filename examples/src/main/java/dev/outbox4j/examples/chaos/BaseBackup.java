package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Set;
import javax.sql.DataSource;

/**
 * A copy of a running server's data, by the functions that the manual's "low level API" of base
 * backups describes: the embedded binaries lack {@code pg_basebackup}.
 */
final class BaseBackup {
  /** What the manual says may be left out, and what belongs to the running server. */
  private static final Set<String> EMPTY =
      Set.of(
          "pg_wal",
          "pg_replslot",
          "pg_dynshmem",
          "pg_notify",
          "pg_serial",
          "pg_snapshots",
          "pg_stat_tmp",
          "pg_subtrans");

  private static final Set<String> LEFT_OUT = Set.of("postmaster.pid", "postmaster.opts");

  private BaseBackup() {}

  /**
   * Copies the data of a running server, as that of a replica that follows it by a slot.
   *
   * @param name the replica's name, and its slot's
   */
  static void copy(DataSource server, Instance primary, Path target, String name)
      throws IOException, SQLException {
    try (Connection connection = server.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("select pg_create_physical_replication_slot('" + name + "', true)");
      statement.execute("select pg_backup_start('" + name + "', true)");
      copyFiles(primary.data(), target);
      try (ResultSet label =
          statement.executeQuery("select labelfile from pg_backup_stop(false)")) {
        label.next();
        Files.writeString(target.resolve("backup_label"), label.getString(1));
      }
    }
    Files.createFile(target.resolve("standby.signal"));
    Files.writeString(
        target.resolve("postgresql.auto.conf"),
        """
        primary_conninfo = 'host=localhost port=%d user=postgres application_name=%s'
        primary_slot_name = '%s'
        """
            .formatted(primary.port(), name, name),
        StandardOpenOption.APPEND);
  }

  private static void copyFiles(Path from, Path to) throws IOException {
    Files.createDirectory(
        to, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    Files.walkFileTree(
        from,
        new SimpleFileVisitor<>() {
          @Override
          public FileVisitResult preVisitDirectory(Path directory, BasicFileAttributes attributes)
              throws IOException {
            Path copy = to.resolve(from.relativize(directory));
            if (!copy.equals(to) && Files.notExists(copy)) {
              Files.createDirectory(copy);
            }
            return EMPTY.contains(from.relativize(directory).toString())
                ? FileVisitResult.SKIP_SUBTREE
                : FileVisitResult.CONTINUE;
          }

          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
              throws IOException {
            Path relative = from.relativize(file);
            if (!LEFT_OUT.contains(relative.toString())) {
              copyFile(file, to.resolve(relative));
            }
            return FileVisitResult.CONTINUE;
          }

          @Override
          public FileVisitResult visitFileFailed(Path file, IOException why) throws IOException {
            if (why instanceof NoSuchFileException) { // of a table that was just dropped
              return FileVisitResult.CONTINUE;
            }
            throw why;
          }
        });
  }

  private static void copyFile(Path from, Path to) throws IOException {
    try {
      Files.copy(from, to);
    } catch (NoSuchFileException droppedMeanwhile) {
      if (Files.exists(from)) {
        throw droppedMeanwhile;
      }
    }
  }
}
