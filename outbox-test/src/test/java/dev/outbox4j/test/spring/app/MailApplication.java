package dev.outbox4j.test.spring.app;

import org.springframework.boot.autoconfigure.SpringBootApplication;

/** A service under test. */
@SpringBootApplication
class MailApplication {}
