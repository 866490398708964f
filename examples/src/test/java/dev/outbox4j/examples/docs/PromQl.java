package dev.outbox4j.examples.docs;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Reads an expression of PromQL, as far as the documents need it, and tells which labels its series
 * have. Prometheus adds up only series with equal labels: anything else has no result, and no error
 * either.
 */
final class PromQl {
  private static final Pattern TOKEN =
      Pattern.compile("\\s*([a-zA-Z_][\\w]*|\\d+[smhd]?|\"[^\"]*\"|[=!<>]=|[-+*/<>=(){}\\[\\],])");
  private static final Set<String> AGGREGATIONS = Set.of("sum", "max", "min", "avg", "count");
  private static final Set<String> FUNCTIONS = Set.of("rate", "increase", "max_over_time");

  /** Those that bind least first. */
  static final List<Set<String>> OPERATORS =
      List.of(
          Set.of("or"),
          Set.of("and", "unless"),
          Set.of("==", "!=", ">", "<", ">=", "<="),
          Set.of("+", "-"),
          Set.of("*", "/"));

  private final Map<String, Set<String>> metrics;
  private final List<String> tokens;
  private int at;

  private PromQl(String expression, Map<String, Set<String>> metrics) {
    this.metrics = metrics;
    this.tokens = tokens(expression);
  }

  static List<String> tokens(String expression) {
    List<String> tokens = new ArrayList<>();
    Matcher token = TOKEN.matcher(expression.strip());
    int end = 0;
    while (token.find(end) && token.start() == end) {
      tokens.add(token.group(1));
      end = token.end();
    }
    require(
        end == expression.strip().length(), "cannot be read from here: " + rest(expression, end));
    return tokens;
  }

  private static String rest(String expression, int end) {
    return expression.strip().substring(end);
  }

  /**
   * Returns the labels of what an expression gives; null for a number.
   *
   * @param metrics the labels of each metric that there is
   * @throws IllegalArgumentException if it names what there is not, or combines unequal labels
   */
  static @Nullable Set<String> labels(String expression, Map<String, Set<String>> metrics) {
    try {
      PromQl reader = new PromQl(expression, metrics);
      Set<String> labels = reader.operation(0);
      require(reader.at == reader.tokens.size(), "goes on with " + reader.peek());
      return labels;
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(expression + ": " + e.getMessage(), e);
    }
  }

  private @Nullable Set<String> operation(int level) {
    if (level == OPERATORS.size()) {
      return operand();
    }
    Set<String> left = operation(level + 1);
    while (OPERATORS.get(level).contains(peek())) {
      String operator = next();
      Set<String> right = operation(level + 1);
      require(
          left == null || right == null || left.equals(right) || operator.equals("or"),
          "'" + operator + "' is between series with " + left + " and with " + right);
      left = left == null ? right : left;
    }
    return left;
  }

  private @Nullable Set<String> operand() {
    String token = next();
    if (token.equals("(")) {
      Set<String> inner = operation(0);
      expect(")");
      return inner;
    }
    if (Character.isDigit(token.charAt(0))) {
      return null;
    }
    if (AGGREGATIONS.contains(token)) {
      Set<String> by = peek().equals("by") ? labelsBy() : Set.of();
      Set<String> inner = argument();
      require(inner != null && inner.containsAll(by), by + " are not among the labels " + inner);
      return by;
    }
    if (token.equals("absent")) {
      argument();
      return Set.of();
    }
    if (FUNCTIONS.contains(token)) {
      return argument();
    }
    return series(token);
  }

  private @Nullable Set<String> argument() {
    expect("(");
    Set<String> inner = operation(0);
    expect(")");
    return inner;
  }

  private Set<String> labelsBy() {
    expect("by");
    expect("(");
    Set<String> by = new TreeSet<>();
    while (!peek().equals(")")) {
      by.add(next());
      if (peek().equals(",")) {
        expect(",");
      }
    }
    expect(")");
    return by;
  }

  private Set<String> series(String metric) {
    Set<String> labels = metrics.get(metric);
    require(labels != null, "there is no metric " + metric);
    if (peek().equals("{")) {
      expect("{");
      String label = next();
      require(labels.contains(label), metric + " has no label " + label + ", it has " + labels);
      expect("=");
      next();
      expect("}");
    }
    if (peek().equals("[")) {
      expect("[");
      next();
      expect("]");
    }
    if (peek().equals("offset")) {
      expect("offset");
      next();
    }
    return labels;
  }

  private String peek() {
    return at < tokens.size() ? tokens.get(at) : "the end";
  }

  private String next() {
    String token = peek();
    at++;
    return token;
  }

  private void expect(String token) {
    String found = next();
    require(found.equals(token), "has " + found + " in place of " + token);
  }

  private static void require(boolean right, String fault) {
    if (!right) {
      throw new IllegalArgumentException(fault);
    }
  }

  /** The expressions of a block: comments and empty lines part them, and so does each new line. */
  static List<String> expressions(String block) {
    List<String> expressions = new ArrayList<>();
    for (String line : block.lines().toList()) {
      int last = expressions.size() - 1;
      if (line.startsWith(" ") && last >= 0) {
        expressions.set(last, expressions.get(last) + " " + line.strip());
      } else if (!line.isBlank() && !line.startsWith("#")) {
        expressions.add(line);
      }
    }
    return expressions;
  }

  static Set<String> labelsOf(String list) {
    return new TreeSet<>(Arrays.asList(list.replace("`", "").split(", ", -1)));
  }
}
