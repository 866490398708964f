package dev.outbox4j.internal.lease;

/** Something held under a lease, which the lease keeper keeps alive. Called on its thread only. */
public interface Renewable {
  /** Renews what is due. Bounded in time; a failure is told and tried again at the next call. */
  void renewDue();
}
