package observerd.interop;

import java.time.Duration;
import java.util.UUID;

import javax.sql.DataSource;

import com.zaxxer.hikari.HikariDataSource;

import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.integration.jdbc.lock.LockRepository;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.annotation.EnableTransactionManagement;

/** A JdbcLockRegistry wired as in an application, with a client id, a pool and a context of its own. */
final class JdbcNode implements Node {

	/** Up to 5.5 the repository's transactions are annotations. */
	@Configuration(proxyBeanMethods = false)
	@EnableTransactionManagement
	static class Transactions {

	}

	private final AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();

	private final HikariDataSource source;

	private final Door door;

	JdbcNode(String url, Duration ttl, int connections, boolean plainKeys) {
		this.source = Witness.pool(url, connections);
		this.context.register(Transactions.class);
		this.context.registerBean("dataSource", DataSource.class, () -> this.source);
		this.context.registerBean("transactionManager", PlatformTransactionManager.class,
				() -> new JdbcTransactionManager(this.source));
		this.context.registerBean("repository", LockRepository.class,
				() -> Generation.repository(this.source, UUID.randomUUID().toString(), ttl));
		this.context.refresh();
		LockRepository repository = this.context.getBean("repository", LockRepository.class);
		this.door = plainKeys ? Doors.repository(repository, ttl) : Doors.registry(Generation.registry(repository, ttl));
	}

	@Override
	public Door door() {
		return this.door;
	}

	/** The repository deletes its rows. */
	@Override
	public void close() {
		this.context.close();
	}

	/** Its rows stay. */
	@Override
	public void kill() {
		this.source.close();
	}

}
