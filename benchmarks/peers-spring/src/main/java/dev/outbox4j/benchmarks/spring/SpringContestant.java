package dev.outbox4j.benchmarks.spring;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Draining;
import java.util.Map;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.support.GenericApplicationContext;

/** A contestant in an application context of its own. */
abstract class SpringContestant implements Draining {
  private @Nullable ConfigurableApplicationContext context;

  final ConfigurableApplicationContext run(
      Bench bench, Class<?> configuration, Map<String, Object> properties, int connections) {
    HikariDataSource pool = bench.pool(connections);
    return new SpringApplicationBuilder(configuration)
        .web(WebApplicationType.NONE)
        .bannerMode(org.springframework.boot.Banner.Mode.OFF)
        .properties(Map.of("logging.level.root", "warn", "spring.main.banner-mode", "off"))
        .properties(properties)
        .initializers(
            created ->
                ((GenericApplicationContext) created)
                    .registerBean("dataSource", DataSource.class, () -> pool))
        .run();
  }

  final void keep(ConfigurableApplicationContext running) {
    context = running;
  }

  @Override
  public void stop() throws InterruptedException {
    if (context != null) {
      // the pool is a bean and closes with its context
      context.close();
    }
    Receiver.set(null);
  }
}
