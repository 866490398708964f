package dev.outbox4j.spi;

/**
 * What a row of an ordered queue is held under: the lease of its bucket instead of one of its own.
 *
 * @param bucket the bucket's number
 * @param epoch grows each time the bucket changes hands; the fence of writes on its rows
 * @param counted true if this delivery was added to the row's deliveries when the row was read
 */
public record BucketLease(int bucket, long epoch, boolean counted) {}
