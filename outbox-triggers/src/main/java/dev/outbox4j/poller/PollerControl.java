package dev.outbox4j.poller;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.poller.internal.Checks;
import dev.outbox4j.poller.internal.ControlStore;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.triggers.internal.Applications;
import java.util.List;
import java.util.Optional;

/**
 * Looks at the pollers of an application, and does to them what people do: from any process, also
 * while no node runs. Each call is one transaction. What changes a poller is kept in its history,
 * and makes its version one more. Immutable and thread-safe.
 *
 * <p>{@link #set}, {@link #reset}, {@link #adopt} and {@link #skip} take the lease away from a node
 * that has it: the batch that is being handled there is not counted, and its rows may come again.
 * The others leave it alone.
 *
 * <p>All methods throw {@link OutboxStoreException} if a statement fails. Those that take an {@link
 * Audit} throw {@link IllegalArgumentException} if there is no such poller, and {@link
 * StaleVersionException} if it has not the version that was expected.
 */
public final class PollerControl {
  private static final int MOST = 100_000;

  private final ControlStore store;

  private PollerControl(ControlStore store) {
    this.store = store;
  }

  /**
   * Returns the control of an application's pollers; does no I/O.
   *
   * @param outbox where they are on record
   * @param application whose pollers
   * @return the control
   * @throws IllegalArgumentException if no application can have the name
   */
  public static PollerControl of(PostgresOutbox outbox, String application) {
    return new PollerControl(new ControlStore(outbox, Applications.require(application)));
  }

  /** {@return the pollers on record, by their names} */
  public List<PollerStatus> pollers() {
    return store.pollers();
  }

  /**
   * Returns the status of a poller.
   *
   * @param poller its name
   * @return its status; empty if it is not on record, as before a node that has it was started
   */
  public Optional<PollerStatus> status(String poller) {
    return store.status(poller);
  }

  /**
   * Pauses a poller: no look begins any more. A batch that is being handled is finished, and may
   * still be when this returns: it is over when {@link PollerStatus#holder()} is empty.
   *
   * @param poller its name
   * @param audit who, and why
   * @return false if it is paused already, and then nothing has changed
   */
  public boolean pause(String poller, Audit audit) {
    return store.pause(poller, audit);
  }

  /**
   * Resumes a poller; it goes on from its position.
   *
   * @param poller its name
   * @param audit who, and why
   * @return false if it is not paused, and then nothing has changed
   */
  public boolean resume(String poller, Audit audit) {
    return store.resume(poller, audit);
  }

  /**
   * Moves a poller to a position, forward or back. One that has come to its end looks again.
   *
   * @param poller its name
   * @param position the position
   * @param audit who, and why
   * @return its new version
   */
  public long set(String poller, Position position, Audit audit) {
    return store.set(poller, position, audit);
  }

  /**
   * Lets a poller begin anew: what is known of its definition, its source and its position is
   * forgotten, and the next node that looks begins as the definition there says. The quarantine is
   * kept.
   *
   * @param poller its name
   * @param audit who, and why
   * @return its new version
   */
  public long reset(String poller, Audit audit) {
    return store.reset(poller, audit);
  }

  /**
   * Takes over a changed definition or source: what is known of them is forgotten, and the next
   * node that looks puts those there on record. The position is kept; that the rows behind it are
   * the same is the caller's word.
   *
   * @param poller its name
   * @param audit who, and why
   * @return its new version
   */
  public long adopt(String poller, Audit audit) {
    return store.adopt(poller, audit);
  }

  /**
   * Moves a poller behind the batch that fails, {@link PollerStatus#failingUntil()}. Its rows are
   * not handled, nor kept in quarantine; the history has both positions.
   *
   * @param poller its name
   * @param audit who, and why; with the version that was looked at
   * @return its new version
   * @throws IllegalStateException if no batch fails
   */
  public long skip(String poller, Audit audit) {
    return store.skip(poller, audit);
  }

  /**
   * Lets the next attempt at a batch that fails be made at once.
   *
   * @param poller its name
   * @param audit who, and why
   * @return false if no attempt is waited for, and then nothing has changed
   */
  public boolean retry(String poller, Audit audit) {
    return store.retry(poller, audit);
  }

  /**
   * Returns rows in quarantine.
   *
   * @param poller the poller's name
   * @param most how many at most, 1 to 100,000
   * @return the rows, by their numbers
   * @throws IllegalArgumentException if the number is out of range
   */
  public List<QuarantinedRow> quarantine(String poller, int most) {
    return store.quarantine(poller, requireMost(most));
  }

  /**
   * Lets a row in quarantine be handled again, by itself, by the node that has the poller. The row
   * is as it was when it failed, and newer versions of it may have been handled since: handlers,
   * and whoever gets messages of it, compare cursors. If its handler succeeds, it leaves
   * quarantine.
   *
   * @param poller the poller's name
   * @param id the row's number
   * @param audit who, and why
   * @return false if there is no such row, or it waits for that already
   */
  public boolean redrive(String poller, long id, Audit audit) {
    return store.redrive(poller, id, audit);
  }

  /**
   * Deletes a row from quarantine without handling it.
   *
   * @param poller the poller's name
   * @param id the row's number
   * @param audit who, and why
   * @return false if there is no such row
   */
  public boolean discard(String poller, long id, Audit audit) {
    return store.discard(poller, id, audit);
  }

  /**
   * Returns what was done to a poller. The latest 1,000 changes of each are kept.
   *
   * @param poller its name
   * @param most how many at most, 1 to 100,000
   * @return the changes, the latest first
   * @throws IllegalArgumentException if the number is out of range
   */
  public List<PollerChange> history(String poller, int most) {
    return store.history(poller, requireMost(most));
  }

  /**
   * Removes a poller with its history and its quarantine. A node that has it puts it on record
   * again, as a new one.
   *
   * @param poller its name
   * @return false if there is no such poller
   */
  public boolean remove(String poller) {
    return store.remove(poller);
  }

  private static int requireMost(int most) {
    return Checks.within("most", most, 1, MOST);
  }
}
