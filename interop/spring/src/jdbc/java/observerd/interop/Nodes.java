package observerd.interop;

import com.zaxxer.hikari.HikariDataSource;

import org.springframework.core.io.ClassPathResource;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;
import org.springframework.jdbc.datasource.init.DatabasePopulatorUtils;
import org.springframework.jdbc.datasource.init.ResourceDatabasePopulator;

/** Nodes whose locks are rows of INT_LOCK. */
final class Nodes {

	private Nodes() {
	}

	static Node open(Options options, int connections) {
		return new JdbcNode(options.url(), options.duration("ttl"), connections, options.plainKeys());
	}

	/** Runs the script that the library brings, unchanged. */
	static void schema(Options options) {
		try (HikariDataSource source = Witness.pool(options.url(), 1)) {
			DatabasePopulatorUtils.execute(new ResourceDatabasePopulator(
					new ClassPathResource("org/springframework/integration/jdbc/schema-postgresql.sql")), source);
		}
	}

	static String version() {
		return JdbcLockRegistry.class.getPackage().getImplementationVersion();
	}

}
