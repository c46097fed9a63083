package observerd.interop;

import java.time.Duration;
import java.time.Instant;
import java.util.ConcurrentModificationException;
import java.util.List;
import java.util.Random;

/** One thread: takes locks in a loop, works under them, and gives them back. */
final class Contender {

	private final Options options;

	private final Node node;

	private final Witness witness;

	private final Summary summary;

	private final Random random;

	private final List<String> locks;

	Contender(Options options, Node node, Witness witness, Summary summary, long seed) {
		this.options = options;
		this.node = node;
		this.witness = witness;
		this.summary = summary;
		this.random = new Random(seed);
		this.locks = options.locks();
	}

	void run(Instant end) {
		while (Instant.now().isBefore(end)) {
			String name = this.locks.get(this.random.nextInt(this.locks.size()));
			try {
				if (hits("abandon-every")) {
					abandon(name);
				}
				else {
					contend(name);
				}
				Thread.sleep(this.random.nextInt(this.options.number("pause") + 1));
			}
			catch (InterruptedException e) {
				Thread.currentThread().interrupt();
				return;
			}
			catch (Exception e) {
				this.summary.fail(e);
			}
		}
	}

	/** Reports whether it is time for something that happens once in so many rounds; 0: never. */
	private boolean hits(String every) {
		int rounds = this.options.number(every);
		return rounds > 0 && this.random.nextInt(rounds) == 0;
	}

	private void contend(String name) throws Exception {
		if (!this.node.door().tryLock(name, this.options.number("wait"))) {
			this.summary.refused.incrementAndGet();
			return;
		}
		this.summary.acquired.incrementAndGet();
		try {
			long count = this.witness.enter(name);
			work(name);
			this.witness.leave(name, count);
		}
		finally {
			unlock(name);
		}
	}

	/** Now and then works for longer than the TTL, and renews. */
	private void work(String name) throws InterruptedException {
		if (!hits("long-every")) {
			Thread.sleep(this.random.nextInt(this.options.number("hold") + 1));
			return;
		}
		Duration ttl = this.options.duration("ttl");
		Instant until = Instant.now().plus(ttl.multipliedBy(3).dividedBy(2));
		while (Instant.now().isBefore(until)) {
			Thread.sleep(ttl.dividedBy(4).toMillis());
			this.node.door().renew(name);
			this.summary.renewed.incrementAndGet();
		}
	}

	private void unlock(String name) {
		try {
			this.node.door().unlock(name);
		}
		catch (ConcurrentModificationException e) {
			this.summary.lost.incrementAndGet();
		}
	}

	/** Takes a lock as another application, which is then gone. */
	private void abandon(String name) throws InterruptedException {
		Node other = Nodes.open(this.options, 1);
		try {
			if (other.door().tryLock(name, this.options.number("wait"))) {
				this.summary.abandoned.incrementAndGet();
			}
		}
		finally {
			other.kill();
		}
	}

}
