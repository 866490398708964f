package dev.outbox4j.examples.orders;

/** The service could not serve on the port it was given. */
public final class PortTaken extends RuntimeException {
  private static final long serialVersionUID = 1L;

  PortTaken(int port, Throwable cause) {
    super("Port " + port + " is taken or not allowed; choose another one, or 0 for any", cause);
  }
}
