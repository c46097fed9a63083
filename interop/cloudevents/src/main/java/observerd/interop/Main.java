package observerd.interop;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.format.DateTimeFormatter;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.cloudevents.CloudEvent;
import io.cloudevents.core.provider.EventFormatProvider;
import io.cloudevents.jackson.JsonCloudEventData;
import io.cloudevents.jackson.JsonFormat;

/**
 * Reads events with the CloudEvents SDK: READER FILE KEY TEXT. The reader "format" is the SDK's own format for JSON,
 * "decimals" a mapper of Jackson with the SDK's module, which keeps all digits of a number.
 *
 * <p>It prints a line of JSON for each: its attributes, its data, the parts of its subject, and the hash of the text. The
 * last two come from Documented, which the test makes of docs/events.md.
 */
public final class Main {

	private static final ObjectMapper DECIMALS = JsonMapper.builder()
			.enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
			.disable(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
			.addModule(JsonFormat.getCloudEventJacksonModule())
			.build();

	/** The form of a timestamp in the file. */
	private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSSSSSX");

	private Main() {
	}

	public static void main(String[] arguments) throws Exception {
		byte[] key = arguments[2].getBytes(StandardCharsets.UTF_8);
		for (String line : Files.readAllLines(Path.of(arguments[1]))) {
			CloudEvent event = read(arguments[0], line);
			ObjectNode out = DECIMALS.createObjectNode();
			out.set("attributes", attributes(event));
			out.set("data", ((JsonCloudEventData) event.getData()).getNode());
			out.set("parts", DECIMALS.valueToTree(Documented.parts(event.getSubject())));
			out.put("hash", Documented.hashed(key, arguments[3]));
			System.out.println(out);
		}
	}

	private static CloudEvent read(String reader, String line) throws IOException {
		return switch (reader) {
			case "format" -> EventFormatProvider.getInstance().resolveFormat(JsonFormat.CONTENT_TYPE)
					.deserialize(line.getBytes(StandardCharsets.UTF_8));
			case "decimals" -> DECIMALS.readValue(line, CloudEvent.class);
			default -> throw new IllegalArgumentException(reader + " is no reader");
		};
	}

	/** Returns what the getters say, times in the form that the file has. */
	private static ObjectNode attributes(CloudEvent event) {
		ObjectNode all = DECIMALS.createObjectNode();
		all.put("specversion", event.getSpecVersion().toString());
		all.put("id", event.getId());
		all.put("source", event.getSource().toString());
		all.put("type", event.getType());
		all.put("subject", event.getSubject());
		all.put("time", TIME.format(event.getTime()));
		all.put("datacontenttype", event.getDataContentType());
		for (String name : event.getExtensionNames()) {
			all.set(name, DECIMALS.valueToTree(event.getExtension(name)));
		}
		return all;
	}
}
