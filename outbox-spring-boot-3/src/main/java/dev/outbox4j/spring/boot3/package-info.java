/** What Spring Boot 3.5 needs beside the starter. */
@NullMarked
package dev.outbox4j.spring.boot3;

import org.jspecify.annotations.NullMarked;
