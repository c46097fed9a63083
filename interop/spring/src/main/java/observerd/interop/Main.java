package observerd.interop;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

import com.zaxxer.hikari.HikariDataSource;

import org.springframework.dao.DataAccessException;
import org.springframework.integration.util.UUIDConverter;

/** Verbs: version, schema makes Spring's tables, keys hashes names, try takes a lock, contend takes many. Nodes has their locks. */
public final class Main {

	private Main() {
	}

	public static void main(String[] arguments) throws Exception {
		List<String> rest = List.of(arguments).subList(1, arguments.length);
		switch (arguments[0]) {
			case "schema" -> Nodes.schema(new Options(rest));
			case "keys" -> System.out.println(rest.stream()
					.map(name -> Summary.quoted(UUIDConverter.getUUID(name).toString()))
					.collect(Collectors.joining(",", "[", "]")));
			case "try" -> System.out.println(Summary.quoted(attempt(new Options(rest))));
			case "contend" -> System.out.println(contend(new Options(rest)).json(version()));
			case "version" -> System.out.println(Summary.quoted(version()));
			default -> throw new IllegalArgumentException(arguments[0] + " is no verb");
		}
	}

	/** Tries once to take a lock, and says what the application is told. */
	private static String attempt(Options options) throws InterruptedException {
		try (Node node = Nodes.open(options, 1)) {
			return String.valueOf(node.door().tryLock("x", 0));
		}
		catch (DataAccessException e) {
			return e.getClass().getSimpleName();
		}
	}

	private static Summary contend(Options options) throws InterruptedException {
		Summary summary = new Summary();
		List<Node> nodes = new ArrayList<>();
		List<Thread> threads = new ArrayList<>();
		int perNode = options.number("threads");
		try (HikariDataSource source = Witness.pool(options.url(), 4)) {
			List<Contender> contenders = new ArrayList<>();
			for (int n = 0; n < options.number("nodes"); n++) {
				Node node = Nodes.open(options, perNode);
				nodes.add(node);
				for (int t = 0; t < perNode; t++) {
					String holder = "java-" + n + "-" + t;
					long seed = options.number("seed") + 1000L * n + t;
					contenders.add(new Contender(options, node, new Witness(source, holder), summary, seed));
				}
			}
			// From here on the time runs, on both sides.
			System.out.println("ready");
			Instant end = Instant.now().plus(options.duration("time"));
			for (Contender contender : contenders) {
				Thread thread = new Thread(() -> contender.run(end));
				threads.add(thread);
				thread.start();
			}
			for (Thread thread : threads) {
				thread.join();
			}
		}
		nodes.forEach(Node::close);
		return summary;
	}

	private static String version() {
		String version = Nodes.version();
		return version == null ? "unknown" : version;
	}

}
