package dev.outbox4j.test.spring.app;

import org.springframework.stereotype.Component;

/** Has nothing to do with messages. */
@Component
class Unrelated {}
