package dev.outbox4j.postgres.testing;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.condition.DisabledIfSystemProperty;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/** For tests with a {@link RestartableServer}. */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@EnabledOnOs({OS.LINUX, OS.MAC})
@DisabledIfSystemProperty(
    named = "outbox.test.postgres",
    matches = "container|url",
    disabledReason = "a server that is not ours cannot be crashed")
public @interface NeedsRestartableServer {}
