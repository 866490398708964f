package dev.outbox4j.benchmarks;

import java.util.List;
import java.util.Locale;

/**
 * Bars from zero on, each below its label, as SVG. It is narrow, so that a telephone shows it in a
 * readable size, and brings its own background, so that it can be read on a dark page as well.
 *
 * @param title one line
 * @param notes lines below the title
 * @param bars from top to bottom
 * @param reference a value to mark at each bar; none if it is 0
 */
record BarChart(String title, List<String> notes, List<Bar> bars, double reference) {
  private static final int WIDTH = 480;
  private static final int MARGIN = 16;
  static final int PLOT = WIDTH - 2 * MARGIN;
  private static final int ROW = 38;
  private static final int LINE = 17;
  private static final int BAR = 10;

  /** Whose bar it is, which its colour tells. */
  enum Kind {
    OURS("#0969da", "Outbox4j"),
    BY_HAND("#6e7781", "SQL by hand"),
    PEER("#bc4c00", "another library");

    private final String colour;
    private final String meaning;

    Kind(String colour, String meaning) {
      this.colour = colour;
      this.meaning = meaning;
    }
  }

  /**
   * A bar, and a line on it from the least to the greatest.
   *
   * @param label whose value it is
   * @param text the value for people
   * @param value how long it is
   * @param low where the line begins
   * @param high where the line ends; if that is where it begins, there is none
   * @param kind whose it is
   */
  record Bar(String label, String text, double value, double low, double high, Kind kind) {}

  String svg() {
    double longest = Math.max(reference, 0);
    for (Bar bar : bars) {
      longest = Math.max(longest, Math.max(bar.value(), bar.high()));
    }
    double scale = longest > 0 ? PLOT / longest : 0;
    StringBuilder body = new StringBuilder();
    int y = MARGIN + 16;
    body.append(text(MARGIN, y, "class=\"title\"", title));
    for (String note : notes) {
      y += LINE;
      body.append(text(MARGIN, y, "class=\"note\"", note));
    }
    y += LINE + 8;
    for (Bar bar : bars) {
      draw(bar, y, scale, body);
      y += ROW;
    }
    legend(y, body);
    int height = y + MARGIN;
    return """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %1$d %2$d" width="%1$d" height="%2$d" role="img">
        <title>%3$s</title>
        <style>
          text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
          .title { font-size: 16px; font-weight: 600 }
          .note { font-size: 12px; fill: #57606a }
          .value { font-weight: 600; text-anchor: end }
        </style>
        <rect class="background" x="0.5" y="0.5" width="%4$d" height="%5$d" rx="6" fill="#ffffff" stroke="#d0d7de"/>
        %6$s</svg>
        """
        .formatted(WIDTH, height, escaped(title), WIDTH - 1, height - 1, body);
  }

  private void draw(Bar bar, int y, double scale, StringBuilder body) {
    body.append(text(MARGIN, y, "class=\"label\"", bar.label()));
    body.append(text(WIDTH - MARGIN, y, "class=\"value\"", bar.text()));
    int top = y + 6;
    body.append(
        "<rect class=\"bar\" x=\"%d\" y=\"%d\" width=\"%s\" height=\"%d\" fill=\"%s\"/>\n"
            .formatted(MARGIN, top, length(bar.value() * scale), BAR, bar.kind().colour));
    if (bar.high() > bar.low()) {
      body.append(
          "<path class=\"range\" d=\"M%1$s %3$dv%4$dM%1$s %5$dH%2$sM%2$s %3$dv%4$d\" fill=\"none\""
                  .formatted(
                      length(MARGIN + bar.low() * scale),
                      length(MARGIN + bar.high() * scale),
                      top + 1,
                      BAR - 2,
                      top + BAR / 2)
              + " stroke=\"#1f2328\" stroke-width=\"1.5\"/>\n");
    }
    if (reference > 0) {
      body.append(
          "<path class=\"reference\" d=\"M%s %dv%d\" stroke=\"#cf222e\" stroke-width=\"2\"/>%n"
              .formatted(length(MARGIN + reference * scale), top - 3, BAR + 6));
    }
  }

  private void legend(int y, StringBuilder body) {
    int x = MARGIN;
    for (Kind kind : Kind.values()) {
      if (bars.stream().anyMatch(bar -> bar.kind() == kind)) {
        body.append(
            "<rect class=\"legend\" x=\"%d\" y=\"%d\" width=\"11\" height=\"11\" fill=\"%s\"/>\n"
                .formatted(x, y - 10, kind.colour));
        body.append(text(x + 17, y, "class=\"note\"", kind.meaning));
        x += 130;
      }
    }
  }

  private static String text(int x, int y, String attributes, String text) {
    return "<text x=\"%d\" y=\"%d\" %s>%s</text>\n".formatted(x, y, attributes, escaped(text));
  }

  private static String length(double pixels) {
    return String.format(Locale.ROOT, "%.1f", pixels);
  }

  private static String escaped(String text) {
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
  }
}
