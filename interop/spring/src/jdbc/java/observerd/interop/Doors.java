package observerd.interop;

import java.time.Duration;
import java.util.ConcurrentModificationException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;

import org.springframework.dao.TransientDataAccessException;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;
import org.springframework.integration.jdbc.lock.LockRepository;

/** Ways to locks in INT_LOCK. */
final class Doors {

	private Doors() {
	}

	/** Through the registry, which hashes names. */
	static Door registry(JdbcLockRegistry registry) {
		return new Door() {

			@Override
			public boolean tryLock(String name, long millis) throws InterruptedException {
				Lock lock = registry.obtain(name);
				return lock.tryLock(millis, TimeUnit.MILLISECONDS);
			}

			@Override
			public void renew(String name) {
				registry.renewLock(name);
			}

			@Override
			public void unlock(String name) {
				registry.obtain(name).unlock();
			}

		};
	}

	/** Tries again as the registry does, such as after a failed serialization. */
	private static boolean insist(BooleanSupplier attempt) {
		while (true) {
			try {
				return attempt.getAsBoolean();
			}
			catch (TransientDataAccessException e) {
				Thread.onSpinWait();
			}
		}
	}

	/** Past the registry, to rows whose keys are plain names, as a registry of one's own would. */
	static Door repository(LockRepository repository, Duration ttl) {
		ConcurrentMap<String, ReentrantLock> threads = new ConcurrentHashMap<>();
		return new Door() {

			@Override
			public boolean tryLock(String name, long millis) throws InterruptedException {
				long end = System.currentTimeMillis() + millis;
				ReentrantLock thread = threads.computeIfAbsent(name, n -> new ReentrantLock());
				if (!thread.tryLock(millis, TimeUnit.MILLISECONDS)) {
					return false;
				}
				while (!insist(() -> Generation.acquire(repository, name, ttl))) {
					if (System.currentTimeMillis() >= end) {
						thread.unlock();
						return false;
					}
					Thread.sleep(20);
				}
				return true;
			}

			@Override
			public void renew(String name) {
				if (!insist(() -> Generation.renew(repository, name, ttl))) {
					throw new IllegalStateException("Could not renew " + name);
				}
			}

			@Override
			public void unlock(String name) {
				try {
					if (!insist(() -> Generation.delete(repository, name))) {
						throw new ConcurrentModificationException(name);
					}
				}
				finally {
					threads.get(name).unlock();
				}
			}

		};
	}

}
