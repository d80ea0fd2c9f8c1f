import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.connect.json.JsonConverter;

/** Reads topics as a sink of Kafka Connect does, and prints a line a record. */
public class Connect {
    public static void main(String[] args) {
        JsonConverter converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", "false"), false);
        Map<String, Object> config = Map.of("bootstrap.servers", args[0], "isolation.level", "read_committed");
        try (Consumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            for (String topic : Arrays.asList(args).subList(1, args.length)) {
                TopicPartition partition = new TopicPartition(topic, 0);
                consumer.assign(List.of(partition));
                consumer.seekToBeginning(List.of(partition));
                long end = consumer.endOffsets(List.of(partition)).get(partition);
                while (consumer.position(partition) < end) {
                    for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofSeconds(1))) {
                        print(topic, r, converter.toConnectData(topic, r.headers(), r.value()).value());
                    }
                }
            }
        }
    }

    static void print(String topic, ConsumerRecord<byte[], byte[]> r, Object value) {
        Map<?, ?> m = (Map<?, ?>) value;
        List<Object> line = new ArrayList<>(List.of(topic.substring(topic.indexOf('.') + 1)));
        for (String name : List.of("hindsight-type", "content-type", "hindsight-time")) {
            Header h = r.headers().lastHeader(name);
            line.add(h == null ? "" : new String(h.value()));
        }
        for (String key : List.of("type", "id", "n", "time", "closed_at", "action")) {
            line.add(m.get(key) == null ? "" : m.get(key));
        }
        for (String key : List.of("propensity", "loss")) { // whole numbers, such as 0 and 1, come as Long
            Number x = (Number) m.get(key);
            line.add(x == null ? "" : Double.doubleToLongBits(x.doubleValue()));
        }
        Object context = m.get("context");
        line.add(context == null ? "" : ((Map<?, ?>) context).keySet().contains("features"));
        StringJoiner out = new StringJoiner("\t");
        line.forEach(x -> out.add(x.toString()));
        System.out.println(out);
    }
}
