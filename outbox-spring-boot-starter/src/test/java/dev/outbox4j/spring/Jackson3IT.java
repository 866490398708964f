package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.outbox4j.codec.jackson3.Jackson3Codec;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.PayloadCodec;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.diagnostics.FailureAnalysis;
import tools.jackson.databind.json.JsonMapper;

/** The codec where Jackson 3 is on the class path, as with Spring Boot 4. */
@ExtendWith(PostgresExtension.class)
class Jackson3IT extends StarterFixture {

  Jackson3IT(TestDatabase database) {
    super(database);
  }

  record Item(String name) {}

  static class Orders {
    @OutboxHandler(queue = "orders", type = "placed")
    void place(Item item) {}
  }

  @Test
  void takesTheMapperThatBootMakesAlsoWhereThereIsOneOfJackson2() {
    service()
        .run(
            context ->
                assertThat(context).getBean(PayloadCodec.class).isInstanceOf(Jackson3Codec.class));
    service()
        .withBean(ObjectMapper.class, ObjectMapper::new)
        .run(
            context ->
                assertThat(context).getBean(PayloadCodec.class).isInstanceOf(Jackson3Codec.class));
  }

  @Test
  void takesNoneOfTwoMappersAndSaysWhatToDo() {
    JsonMapper one = JsonMapper.builder().build();
    service()
        .withBean(Orders.class)
        .withBean("one", JsonMapper.class, () -> one)
        .withBean("other", JsonMapper.class, () -> one)
        .run(
            context -> {
              FailureAnalysis analysis =
                  new OutboxFailureAnalyzer().analyze(context.getStartupFailure());
              assertThat(analysis.getDescription())
                  .contains("Jackson3IT$Orders.place: type 'placed' is decoded to ");
              assertThat(analysis.getAction()).contains("mark one mapper of several with @Primary");
            });
  }
}
