package dev.outbox4j.postgres.internal;

import java.sql.PreparedStatement;
import java.sql.SQLException;
import org.postgresql.PGStatement;
import org.postgresql.util.PGobject;

/**
 * Binds texts as of type text. With {@code stringtype=unspecified} pgjdbc would leave the type of a
 * string to the server, and then send an execution of several statements in several transactions.
 */
final class TypedText {
  private static final boolean PGJDBC = isPresent();

  private TypedText() {}

  private static boolean isPresent() {
    try {
      Class.forName("org.postgresql.util.PGobject", false, TypedText.class.getClassLoader());
      return true;
    } catch (ClassNotFoundException e) {
      return false;
    }
  }

  static boolean isKnownTo(PreparedStatement statement) throws SQLException {
    return PGJDBC && statement.isWrapperFor(PGStatement.class);
  }

  static void set(PreparedStatement statement, int index, String text) throws SQLException {
    PGobject typed = new PGobject();
    typed.setType("text");
    typed.setValue(text);
    statement.setObject(index, typed);
  }
}
