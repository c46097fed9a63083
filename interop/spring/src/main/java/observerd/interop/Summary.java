package observerd.interop;

import java.util.concurrent.atomic.AtomicLong;

/** What happened, counted by all threads, and printed as one line of JSON. */
final class Summary {

	final AtomicLong acquired = new AtomicLong();

	final AtomicLong refused = new AtomicLong();

	/** Locks that were left as a killed application leaves them. */
	final AtomicLong abandoned = new AtomicLong();

	final AtomicLong renewed = new AtomicLong();

	/** Unlocks that found the lock gone. */
	final AtomicLong lost = new AtomicLong();

	/** Errors of the registry that no thread should see. */
	final AtomicLong failed = new AtomicLong();

	private volatile String lastFailure = "";

	void fail(Exception e) {
		this.failed.incrementAndGet();
		this.lastFailure = e.toString();
	}

	String json(String version) {
		return String.format(
				"{\"version\":\"%s\",\"acquired\":%d,\"refused\":%d,\"abandoned\":%d,\"renewed\":%d,\"lost\":%d,\"failed\":%d,\"last_failure\":%s}",
				version, this.acquired.get(), this.refused.get(), this.abandoned.get(), this.renewed.get(),
				this.lost.get(), this.failed.get(), quoted(this.lastFailure));
	}

	static String quoted(String text) {
		StringBuilder out = new StringBuilder("\"");
		for (char c : text.toCharArray()) {
			if (c == '"' || c == '\\') {
				out.append('\\').append(c);
			}
			else if (c < 0x20 || c > 0x7e) {
				out.append(String.format("\\u%04x", (int) c));
			}
			else {
				out.append(c);
			}
		}
		return out.append('"').toString();
	}

}
