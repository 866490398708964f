/** Peers that live in Spring Boot, with the settings that they recommend for throughput. */
@NullMarked
package dev.outbox4j.benchmarks.spring;

import org.jspecify.annotations.NullMarked;
