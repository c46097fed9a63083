package sqldb

import "testing"

func TestRendering(t *testing.T) {
	t.Parallel()
	lite, pg := &Rendering{dialect: sqliteDialect()}, &Rendering{dialect: postgresDialect(), ours: `o"s`, locks: "l's"}
	perRow := *pg
	perRow.perRow = true
	unknown := &Rendering{dialect: postgresDialect()}
	for _, c := range []struct {
		by         *Rendering
		text, want string
	}{
		{lite, `SELECT $12, '{a}' FROM obs_lock WHERE x {among $1}{skip}`, `SELECT ?12, '{a}' FROM obs_lock WHERE x IN (SELECT value FROM json_each(?1))`},
		{lite, `{touch $4}`, `created_date = strftime('%Y-%m-%d %H:%M:%f000', 'now')`},
		{lite, `{stale l $1}`, `l.created_date < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', (?1 + o.ttl_ms / 1000.0)))`},
		{unknown, `SELECT nextval('obs_fence') FROM int_lock`, `SELECT nextval('obs_fence') FROM int_lock`},
		{pg, `SELECT nextval('obs_fence') FROM int_lock, obs_hold h`, `SELECT nextval('"o""s"."obs_fence"') FROM "l's"."int_lock", "o""s"."obs_hold" h`},
		{pg, `{alive l want.ttl}`, `(l.created_date >= ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => want.ttl)))`},
		{&perRow, `{cols}; {vals $4}`, `created_date, expired_after; (clock_timestamp() AT TIME ZONE 'UTC'), ((clock_timestamp() AT TIME ZONE 'UTC') + make_interval(secs => $4))`},
		{&perRow, `{alive l $4}`, `(l.expired_after >= (clock_timestamp() AT TIME ZONE 'UTC') AND CAST($4 AS DOUBLE PRECISION) IS NOT NULL)`},
	} {
		got := c.by.SQL(c.text)
		if got != c.want {
			t.Errorf("%s\nis   %s\nwant %s", c.text, got, c.want)
		}
		if again := c.by.SQL(got); again != got {
			t.Errorf("rendered again:\n%s\nis %s", got, again)
		}
	}
}
