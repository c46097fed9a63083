package observerd.interop;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The arguments after the verb, each written name=value; durations are in milliseconds. */
final class Options {

	private final Map<String, String> values = new HashMap<>();

	Options(List<String> arguments) {
		for (String argument : arguments) {
			int at = argument.indexOf('=');
			if (at < 0) {
				throw new IllegalArgumentException(argument + " is not name=value");
			}
			this.values.put(argument.substring(0, at), argument.substring(at + 1));
		}
	}

	/** The URL for JDBC, with user and password in it. */
	String url() {
		return required("url");
	}

	/** The names of the locks, as an application would write them. */
	List<String> locks() {
		return List.of(required("locks").split(","));
	}

	/** Whether keys are names; otherwise the registry hashes them. */
	boolean plainKeys() {
		return required("keys").equals("plain");
	}

	int number(String name) {
		return Integer.parseInt(required(name));
	}

	Duration duration(String name) {
		return Duration.ofMillis(number(name));
	}

	String required(String name) {
		String value = this.values.get(name);
		if (value == null) {
			throw new IllegalArgumentException(name + "=… is missing");
		}
		return value;
	}

}
