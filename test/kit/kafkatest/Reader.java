import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Prints what Kafka's own client finds committed in a topic: a record a line, in fields parted by blanks. */
public class Reader {
	public static void main(String[] args) {
		Map<String, Object> config = Map.of("bootstrap.servers", args[0], "isolation.level", "read_committed", "auto.offset.reset", "earliest");
		try (var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
			List<TopicPartition> partitions = consumer.partitionsFor(args[1]).stream().map(p -> new TopicPartition(args[1], p.partition())).collect(Collectors.toList());
			consumer.assign(partitions);
			consumer.seekToBeginning(partitions);
			Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
			while (partitions.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
				for (var r : consumer.poll(Duration.ofSeconds(1))) {
					var line = new StringBuilder().append(r.partition()).append(' ').append(base64(r.key())).append(' ').append(base64(r.value()));
					r.headers().forEach(h -> line.append(' ').append(h.key()).append(':').append(base64(h.value())));
					System.out.println(line);
				}
			}
		}
	}

	private static String base64(byte[] bytes) {
		return bytes == null ? "null" : "=" + new String(Base64.getEncoder().encode(bytes), StandardCharsets.US_ASCII);
	}
}
