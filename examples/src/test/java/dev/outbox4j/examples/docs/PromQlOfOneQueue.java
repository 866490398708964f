package dev.outbox4j.examples.docs;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Evaluates an expression of PromQL where no metric has more than one series: what the series are
 * aggregated by changes nothing then. As far as the alert rules need it.
 */
final class PromQlOfOneQueue {
  private final List<String> tokens;
  private final Map<String, Double> values;
  private int at;

  private PromQlOfOneQueue(List<String> tokens, Map<String, Double> values) {
    this.tokens = tokens;
    this.values = values;
  }

  /** A number has a value everywhere, a series only where it is. */
  private record Result(@Nullable Double value, boolean isNumber) {}

  /**
   * Tells whether an expression has a result, so that an alert of it fires.
   *
   * @param values those of what the expression reads, by its text, such as {@code
   *     increase(outbox_acked_total[15m] offset 5m)}; what is not there has no series
   */
  static boolean holds(String expression, Map<String, Double> values) {
    PromQlOfOneQueue reader = new PromQlOfOneQueue(PromQl.tokens(expression), values);
    Result result = reader.operation(0);
    if (reader.at != reader.tokens.size()) {
      throw new IllegalArgumentException(expression + " goes on with " + reader.peek());
    }
    return result.value() != null;
  }

  private Result operation(int level) {
    if (level == PromQl.OPERATORS.size()) {
      return operand();
    }
    Result left = operation(level + 1);
    while (PromQl.OPERATORS.get(level).contains(peek())) {
      String operator = next();
      left = applied(operator, left, operation(level + 1));
    }
    return left;
  }

  private static Result applied(String operator, Result left, Result right) {
    Double a = left.value();
    Double b = right.value();
    Double value =
        switch (operator) {
          case "or" -> a == null ? b : a;
          case "unless" -> b == null ? a : null;
          default -> a == null || b == null ? null : ofBoth(operator, a, b);
        };
    return new Result(value, left.isNumber() && right.isNumber());
  }

  private static @Nullable Double ofBoth(String operator, double a, double b) {
    return switch (operator) {
      case "and" -> a;
      case "+" -> a + b;
      case "-" -> a - b;
      case "*" -> a * b;
      case "/" -> a / b;
      case ">" -> a > b ? a : null;
      case "<" -> a < b ? a : null;
      case ">=" -> a >= b ? a : null;
      case "<=" -> a <= b ? a : null;
      case "==" -> a == b ? a : null;
      default -> throw new IllegalArgumentException("operator " + operator);
    };
  }

  private Result operand() {
    String token = next();
    if (token.equals("(")) {
      Result inner = operation(0);
      next();
      return inner;
    }
    if (Character.isDigit(token.charAt(0))) {
      return new Result(Double.valueOf(token), true);
    }
    if (token.equals("sum") || token.equals("max")) {
      at += 5; // by ( queue ) (
      Result inner = operation(0);
      next();
      return inner;
    }
    return new Result(values.get(read(token)), false);
  }

  /** A function of a range, or a series. */
  private String read(String first) {
    StringBuilder text = new StringBuilder(first);
    if (peek().equals("(")) {
      text.append(next()).append(read(next())).append(next());
      return text.toString();
    }
    while (peek().equals("{") || peek().equals("[")) {
      String token;
      do {
        token = next();
        text.append(token);
      } while (!token.equals("}") && !token.equals("]"));
    }
    if (peek().equals("offset")) {
      text.append(' ').append(next()).append(' ').append(next());
    }
    return text.toString();
  }

  private String peek() {
    return at < tokens.size() ? tokens.get(at) : "the end";
  }

  private String next() {
    String token = peek();
    at++;
    return token;
  }
}
