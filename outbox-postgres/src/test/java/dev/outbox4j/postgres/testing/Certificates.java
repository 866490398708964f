package dev.outbox4j.postgres.testing;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * A certificate authority, server certificates by it for {@code localhost} and for a host of
 * another name, and an authority of somebody else's: made by the {@code keytool} of the running
 * JDK. Every signature names its algorithm, since the defaults differ from JDK to JDK.
 */
final class Certificates {
  private static final String PASSWORD = "changeit";
  private static final String SHA_256 = "SHA256withRSA";
  private static final String SHA_384 = "SHA384withRSA";
  private static final List<String> RSA =
      List.of("-keyalg", "RSA", "-keysize", "2048", "-sigalg", SHA_256);
  private static final List<String> EC =
      List.of("-keyalg", "EC", "-groupname", "secp256r1", "-sigalg", "SHA256withECDSA");

  private final Path folder;

  private Certificates(Path folder) {
    this.folder = folder;
  }

  static Certificates make(Path folder) throws IOException, GeneralSecurityException {
    Certificates made = new Certificates(folder);
    made.authority("ca");
    made.authority("stranger");
    made.keyPair("server", EC);
    made.keytool("-certreq", "-alias", "server", "-keystore", "server.p12", "-file", "server.csr");
    made.sign("server.crt", "dns:localhost", SHA_256);
    made.sign("sha384.crt", "dns:localhost", SHA_384);
    made.sign("misnamed.crt", "dns:db.elsewhere.invalid", SHA_256);
    made.write(
        "server.key",
        "PRIVATE KEY",
        made.store("server").getKey("server", PASSWORD.toCharArray()).getEncoded());
    return made;
  }

  Path rootOfOurs() {
    return folder.resolve("ca.crt");
  }

  Path rootOfStranger() {
    return folder.resolve("stranger.crt");
  }

  Path server() {
    return folder.resolve("server.crt");
  }

  Path serverBySha384() {
    return folder.resolve("sha384.crt");
  }

  Path misnamedServer() {
    return folder.resolve("misnamed.crt");
  }

  Path serverKey() {
    return folder.resolve("server.key");
  }

  private void sign(String file, String name, String algorithm) throws IOException {
    List<String> arguments = new ArrayList<>();
    Collections.addAll(arguments, "-gencert", "-alias", "ca", "-keystore", "ca.p12");
    Collections.addAll(arguments, "-infile", "server.csr", "-outfile", file, "-rfc");
    Collections.addAll(arguments, "-validity", "2", "-ext", "san=" + name);
    Collections.addAll(arguments, "-sigalg", algorithm);
    keytool(arguments.toArray(String[]::new));
  }

  private void authority(String name) throws IOException, GeneralSecurityException {
    keyPair(name, RSA, "-ext", "bc:c", "-ext", "ku:c=keyCertSign");
    write(name + ".crt", "CERTIFICATE", store(name).getCertificate(name).getEncoded());
  }

  private void keyPair(String name, List<String> kind, String... more) throws IOException {
    List<String> arguments = new ArrayList<>();
    Collections.addAll(arguments, "-genkeypair", "-alias", name, "-dname", "CN=" + name);
    arguments.addAll(kind);
    Collections.addAll(arguments, "-validity", "2", "-keystore", name + ".p12");
    Collections.addAll(arguments, more);
    keytool(arguments.toArray(String[]::new));
  }

  private void keytool(String... arguments) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "keytool").toString());
    Collections.addAll(command, arguments);
    Collections.addAll(command, "-storetype", "PKCS12", "-storepass", PASSWORD);
    Process process =
        new ProcessBuilder(command)
            .directory(folder.toFile())
            .redirectErrorStream(true)
            .redirectOutput(folder.resolve("keytool.log").toFile())
            .start();
    try {
      if (!process.waitFor(60, TimeUnit.SECONDS) || process.exitValue() != 0) {
        process.destroyForcibly();
        throw new IOException(
            arguments[0] + ": " + Files.readString(folder.resolve("keytool.log")));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException(e);
    }
  }

  private KeyStore store(String name) throws IOException, GeneralSecurityException {
    KeyStore store = KeyStore.getInstance("PKCS12");
    try (InputStream in = Files.newInputStream(folder.resolve(name + ".p12"))) {
      store.load(in, PASSWORD.toCharArray());
    }
    return store;
  }

  private void write(String file, String what, byte[] der) throws IOException {
    String body =
        Base64.getMimeEncoder(64, "\n".getBytes(StandardCharsets.US_ASCII)).encodeToString(der);
    Files.writeString(
        folder.resolve(file),
        "-----BEGIN " + what + "-----\n" + body + "\n-----END " + what + "-----\n");
  }
}
