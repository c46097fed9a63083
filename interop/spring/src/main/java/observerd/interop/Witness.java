package observerd.interop;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

import javax.sql.DataSource;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;

/**
 * Sees in the database who is in the section that a lock protects. It knows nothing of locks: a
 * primary key refuses the second of two, and a counter that each reads at its beginning and writes
 * at its end loses an increment. The program that started this one made its tables.
 */
final class Witness {

	private final DataSource source;

	private final String holder;

	Witness(DataSource source, String holder) {
		this.source = source;
		this.holder = holder;
	}

	static HikariDataSource pool(String url, int connections) {
		HikariConfig config = new HikariConfig();
		config.setJdbcUrl(url);
		config.setMaximumPoolSize(connections);
		return new HikariDataSource(config);
	}

	/** Notes the beginning, and returns the counter. */
	long enter(String lock) throws SQLException {
		try (Connection c = this.source.getConnection();
				PreparedStatement s = c.prepareStatement("SELECT interop_enter(?, ?, 'java', 0)")) {
			s.setString(1, lock);
			s.setString(2, this.holder);
			try (ResultSet row = s.executeQuery()) {
				row.next();
				return row.getLong(1);
			}
		}
	}

	/** Notes the end, and writes the counter that {@link #enter} gave, plus one. */
	void leave(String lock, long count) throws SQLException {
		try (Connection c = this.source.getConnection();
				PreparedStatement s = c.prepareStatement("SELECT interop_leave(?, ?, ?)")) {
			s.setString(1, lock);
			s.setString(2, this.holder);
			s.setLong(3, count + 1);
			s.executeQuery().close();
		}
	}

}
