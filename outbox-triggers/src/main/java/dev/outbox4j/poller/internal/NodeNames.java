package dev.outbox4j.poller.internal;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.UUID;

/** Names nodes, for people. */
public final class NodeNames {
  private static final int LONGEST_HOST = 100;

  private NodeNames() {}

  /** {@return the host's name and the process's id} */
  public static String ofThisProcess() {
    return host() + "/" + ProcessHandle.current().pid();
  }

  /** {@return a name that no other node has, nor another object in this process} */
  public static String distinct(String node) {
    return node + "/" + UUID.randomUUID().toString().substring(0, 8);
  }

  private static String host() {
    String host = System.getenv("HOSTNAME");
    if (host == null || host.isBlank()) {
      try {
        host = InetAddress.getLocalHost().getHostName();
      } catch (UnknownHostException e) {
        host = "unknown";
      }
    }
    return host.length() > LONGEST_HOST ? host.substring(0, LONGEST_HOST) : host;
  }
}
