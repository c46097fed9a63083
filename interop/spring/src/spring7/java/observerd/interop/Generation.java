package observerd.interop;

import java.time.Duration;

import javax.sql.DataSource;

import org.springframework.integration.jdbc.lock.DefaultLockRepository;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;
import org.springframework.integration.jdbc.lock.LockRepository;

/** What is particular to Spring Integration 7: the TTL lives in the row, and the registry writes it. */
final class Generation {

	private Generation() {
	}

	static DefaultLockRepository repository(DataSource source, String id, Duration ttl) {
		return new DefaultLockRepository(source, id);
	}

	static JdbcLockRegistry registry(LockRepository repository, Duration ttl) {
		return new JdbcLockRegistry(repository, ttl);
	}

	static boolean acquire(LockRepository repository, String key, Duration ttl) {
		return repository.acquire(key, ttl);
	}

	static boolean renew(LockRepository repository, String key, Duration ttl) {
		return repository.renew(key, ttl);
	}

	static boolean delete(LockRepository repository, String key) {
		return repository.delete(key);
	}

}
