/**
 * What JUnit's extension and Spring's slice share. Not API: anything here may change in any
 * release.
 */
@NullMarked
package dev.outbox4j.test.internal.kit;

import org.jspecify.annotations.NullMarked;
