package observerd.interop;

import java.time.Duration;

import javax.sql.DataSource;

import org.springframework.integration.jdbc.lock.DefaultLockRepository;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;
import org.springframework.integration.jdbc.lock.LockRepository;

/** What is particular to Spring Integration 5: the TTL lives in the reader, in the repository. */
final class Generation {

	private Generation() {
	}

	static DefaultLockRepository repository(DataSource source, String id, Duration ttl) {
		DefaultLockRepository repository = new DefaultLockRepository(source, id);
		repository.setTimeToLive((int) ttl.toMillis());
		return repository;
	}

	static JdbcLockRegistry registry(LockRepository repository, Duration ttl) {
		return new JdbcLockRegistry(repository);
	}

	static boolean acquire(LockRepository repository, String key, Duration ttl) {
		return repository.acquire(key);
	}

	static boolean renew(LockRepository repository, String key, Duration ttl) {
		return repository.renew(key);
	}

	static boolean delete(LockRepository repository, String key) {
		repository.delete(key);
		return true; // It does not say.
	}

}
