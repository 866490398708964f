/** Peers that need no framework, with the settings that they recommend for throughput. */
@NullMarked
package dev.outbox4j.benchmarks.peers;

import org.jspecify.annotations.NullMarked;
