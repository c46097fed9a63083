package lockdb_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/test/kit/lockdbtest"
	"github.com/observerd/observerd/test/kit/springtest"
)

// springDB makes a database on which an application with that generation of
// Spring Integration has worked, and migrates it.
func springDB(t *testing.T, g springtest.Generation) (db *lockdb.DB, url string) {
	t.Helper()
	url = lockdbtest.Postgres(t, g.Table())
	db = open(t, url)
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db, url
}

// TestTableThatCannotBeSharedIsRefused names the fault and its remedy, for
// each way in which a table can mislead the nodes that share it.
func TestTableThatCannotBeSharedIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		table springtest.Generation
		// broken is done to the table, after our migrations.
		broken string
		says   []string
		// fixed is what the message advises to do; empty where it is no
		// statement.
		fixed string
	}{
		"EXPIRED_AFTER may be null": {
			springtest.Spring6, `ALTER TABLE INT_LOCK ADD EXPIRED_AFTER TIMESTAMP`,
			[]string{"public.int_lock", "EXPIRED_AFTER may be NULL", "up to 6", "SET NOT NULL"},
			`DELETE FROM public.int_lock WHERE expired_after IS NULL; ALTER TABLE public.int_lock ALTER expired_after SET NOT NULL`,
		},
		"EXPIRED_AFTER has a default": {
			springtest.Spring6, `ALTER TABLE INT_LOCK ADD EXPIRED_AFTER TIMESTAMP NOT NULL DEFAULT now()`,
			[]string{"EXPIRED_AFTER has the default now()", "at once or never", "DROP DEFAULT"},
			`ALTER TABLE public.int_lock ALTER expired_after DROP DEFAULT, ALTER expired_after SET NOT NULL`,
		},
		"EXPIRED_AFTER is computed": {
			springtest.Spring6, `ALTER TABLE INT_LOCK ADD EXPIRED_AFTER TIMESTAMP NOT NULL GENERATED ALWAYS AS (CREATED_DATE + interval '1 minute') STORED`,
			[]string{"EXPIRED_AFTER has the default (created_date"}, "",
		},
		"instants with a zone": {
			springtest.Spring7, `ALTER TABLE INT_LOCK ALTER CREATED_DATE TYPE TIMESTAMPTZ, ALTER EXPIRED_AFTER TYPE TIMESTAMPTZ`,
			[]string{"CREATED_DATE is timestamp with time zone", "EXPIRED_AFTER is timestamp with time zone", "TIMESTAMP without a zone"},
			`DELETE FROM public.int_lock; ALTER TABLE public.int_lock ALTER CREATED_DATE TYPE TIMESTAMP; ALTER TABLE public.int_lock ALTER EXPIRED_AFTER TYPE TIMESTAMP`,
		},
		"instants in whole seconds": {
			springtest.Spring6, `ALTER TABLE INT_LOCK ALTER CREATED_DATE TYPE TIMESTAMP(0)`,
			[]string{"CREATED_DATE keeps 0 decimals of a second"},
			`ALTER TABLE public.int_lock ALTER CREATED_DATE TYPE TIMESTAMP`,
		},
		"ids that do not fit": {
			springtest.Spring6, `ALTER TABLE INT_LOCK ALTER CLIENT_ID TYPE VARCHAR(32), ALTER LOCK_KEY TYPE CHAR(20)`,
			[]string{"LOCK_KEY holds 20 characters, an id has 36", "CLIENT_ID holds 32 characters"},
			`ALTER TABLE public.int_lock ALTER LOCK_KEY TYPE CHAR(36); ALTER TABLE public.int_lock ALTER CLIENT_ID TYPE CHAR(36)`,
		},
		"ids of another type": {
			springtest.Spring6, `ALTER TABLE INT_LOCK ALTER CLIENT_ID TYPE UUID USING CLIENT_ID::uuid`,
			[]string{"CLIENT_ID is uuid"},
			`ALTER TABLE public.int_lock ALTER client_id TYPE VARCHAR(36)`,
		},
		"no key": {
			springtest.Spring6, `ALTER TABLE INT_LOCK DROP CONSTRAINT INT_LOCK_PK`,
			[]string{"no primary key of LOCK_KEY and REGION", "two nodes can hold one lock"},
			`ALTER TABLE public.int_lock ADD CONSTRAINT int_lock_pk PRIMARY KEY (lock_key, region)`,
		},
		"a key for some rows only": {
			springtest.Spring6, `ALTER TABLE INT_LOCK DROP CONSTRAINT INT_LOCK_PK; CREATE UNIQUE INDEX part ON INT_LOCK (LOCK_KEY, REGION) WHERE REGION = 'DEFAULT'`,
			[]string{"no primary key"}, `ALTER TABLE public.int_lock ADD CONSTRAINT int_lock_pk PRIMARY KEY (lock_key, region)`,
		},
		"a key that is checked too late": {
			springtest.Spring6, `ALTER TABLE INT_LOCK DROP CONSTRAINT INT_LOCK_PK; ALTER TABLE INT_LOCK ADD PRIMARY KEY (LOCK_KEY, REGION) DEFERRABLE`,
			[]string{"no primary key"}, "",
		},
		"another key": {
			springtest.Spring6, `ALTER TABLE INT_LOCK DROP CONSTRAINT INT_LOCK_PK; ALTER TABLE INT_LOCK ADD PRIMARY KEY (LOCK_KEY)`,
			[]string{"no primary key"}, "",
		},
		"a column that nobody fills in": {
			springtest.Spring6, `ALTER TABLE INT_LOCK ADD "Owner" TEXT NOT NULL`,
			[]string{"the column Owner must be filled in"},
			`ALTER TABLE public.int_lock ALTER "Owner" DROP NOT NULL`,
		},
		"a missing column": {
			springtest.Spring6, `ALTER TABLE INT_LOCK DROP REGION CASCADE`,
			[]string{"the column REGION is missing"}, "",
		},
		"several faults": {
			springtest.Spring7, `ALTER TABLE INT_LOCK ALTER EXPIRED_AFTER DROP NOT NULL; ALTER TABLE INT_LOCK DROP CONSTRAINT INT_LOCK_PK`,
			[]string{"EXPIRED_AFTER may be NULL", "no primary key"}, "",
		},
		"a view": {
			springtest.Spring6, `ALTER TABLE INT_LOCK RENAME TO real; CREATE VIEW INT_LOCK AS SELECT * FROM real`,
			[]string{"public.int_lock is not a table"}, "",
		},
		"no table": {
			springtest.Spring6, `DROP TABLE INT_LOCK`,
			[]string{"there is none in the search_path", "schema-postgresql.sql"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, url := springDB(t, test.table)
			exec(t.Context(), t, url, map[string]string{"postgres": test.broken})
			err := db.Ready(t.Context())
			if !errors.Is(err, sqldb.ErrMixedTable) {
				t.Fatalf("the table is accepted: %v", err)
			}
			for _, part := range test.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not stand in: %v", part, err)
				}
			}
			if test.fixed == "" {
				return
			}
			exec(t.Context(), t, url, map[string]string{"postgres": test.fixed})
			if err := db.Ready(t.Context()); err != nil {
				t.Errorf("after the advice was followed: %v", err)
			}
			acquire(t, db, "order-observer-poll")
		})
	}
}

// TestTablesThatDifferHarmlesslyAreAccepted covers what was Spring's table in
// the course of the years, and what people add to it.
func TestTablesThatDifferHarmlesslyAreAccepted(t *testing.T) {
	t.Parallel()
	for name, changed := range map[string]string{
		"4.3 allowed nulls":     `ALTER TABLE INT_LOCK ALTER CREATED_DATE DROP NOT NULL`,
		"varying lengths":       `ALTER TABLE INT_LOCK ALTER LOCK_KEY TYPE VARCHAR(64), ALTER CLIENT_ID TYPE VARCHAR(36), ALTER REGION TYPE VARCHAR(20)`,
		"text":                  `ALTER TABLE INT_LOCK ALTER LOCK_KEY TYPE TEXT, ALTER CLIENT_ID TYPE TEXT, ALTER REGION TYPE TEXT`,
		"milliseconds":          `ALTER TABLE INT_LOCK ALTER CREATED_DATE TYPE TIMESTAMP(3)`,
		"a column of theirs":    `ALTER TABLE INT_LOCK ADD NOTE TEXT, ADD AT TIMESTAMP NOT NULL DEFAULT now()`,
		"a key the other way":   `ALTER TABLE INT_LOCK DROP CONSTRAINT INT_LOCK_PK; ALTER TABLE INT_LOCK ADD PRIMARY KEY (REGION, LOCK_KEY)`,
		"a key with more in it": `ALTER TABLE INT_LOCK DROP CONSTRAINT INT_LOCK_PK; CREATE UNIQUE INDEX wide ON INT_LOCK (LOCK_KEY, REGION) INCLUDE (CLIENT_ID)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, url := springDB(t, springtest.Spring6)
			exec(t.Context(), t, url, map[string]string{"postgres": changed})
			if err := db.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			leases := db.Leases()
			g := acquire(t, db, "order-observer-poll")
			if r, err := leases.Renew(t.Context(), []lock.Grant{g}); err != nil || r[0] != lock.Renewed {
				t.Errorf("renew: %v, %v", r, err)
			}
			if _, err := leases.Acquire(t.Context(), request("order-observer-poll")); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("a second acquisition: %v", err)
			}
			if err := leases.Release(t.Context(), g); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMixedTableIsNoticedAtWork covers a migration that is done by halves
// while nodes run: no statement of theirs fails by itself.
func TestMixedTableIsNoticedAtWork(t *testing.T) {
	t.Parallel()
	for name, half := range map[string]string{
		"null":    `ALTER TABLE INT_LOCK ADD EXPIRED_AFTER TIMESTAMP`,
		"default": `ALTER TABLE INT_LOCK ADD EXPIRED_AFTER TIMESTAMP NOT NULL DEFAULT now()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, url := springDB(t, springtest.Spring6)
			held := acquire(t, db, "wes-observer-poll")
			exec(t.Context(), t, url, map[string]string{"postgres": half})
			if err := db.LookAgain(t.Context()); !errors.Is(err, sqldb.ErrMixedTable) {
				t.Errorf("a look at a table that is half migrated: %v", err)
			}
			if _, err := db.Leases().Acquire(t.Context(), request("order-observer-poll")); !errors.Is(err, sqldb.ErrMixedTable) {
				t.Errorf("an acquisition on a table that is half migrated: %v", err)
			}
			if err := db.Leases().Release(t.Context(), held); err != nil {
				t.Errorf("a lease from before cannot be given back: %v", err)
			}
			exec(t.Context(), t, url, map[string]string{"postgres": `
				ALTER TABLE INT_LOCK ALTER EXPIRED_AFTER DROP DEFAULT, ALTER EXPIRED_AFTER SET NOT NULL`})
			acquire(t, db, "order-observer-poll")
			if n := count(t, url, `SELECT count(*) FROM int_lock WHERE expired_after > clock_timestamp() AT TIME ZONE 'UTC'`); n != 1 {
				t.Error("the lease has no expiry of its own after the migration was finished")
			}
		})
	}
}

// TestNobodySlipsThroughWhileOthersLook lets many want locks that live nodes of
// Spring 7 hold, on a table that has just become half migrated: read as one of
// four columns, all of them would look expired.
func TestNobodySlipsThroughWhileOthersLook(t *testing.T) {
	t.Parallel()
	db, url := springDB(t, springtest.Spring6)
	exec(t.Context(), t, url, map[string]string{"postgres": `
		ALTER TABLE INT_LOCK ADD EXPIRED_AFTER TIMESTAMP;
		INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
		SELECT 'lock-' || n, 'DEFAULT', 'java-' || n, now() AT TIME ZONE 'UTC' - interval '1 hour', now() AT TIME ZONE 'UTC' + interval '1 hour'
		  FROM generate_series(1, 20) n`})
	if err := db.LookAgain(t.Context()); !errors.Is(err, sqldb.ErrMixedTable) {
		t.Errorf("a look at a table that is half migrated: %v", err)
	}
	var work sync.WaitGroup
	for n := range 20 {
		work.Go(func() {
			for range 3 {
				if _, err := db.Leases().Acquire(t.Context(), request(fmt.Sprintf("lock-%d", n+1))); !errors.Is(err, sqldb.ErrMixedTable) {
					t.Errorf("lock %d: %v", n+1, err)
				}
			}
		})
	}
	work.Wait()
	if n := count(t, url, `SELECT count(*) FROM INT_LOCK WHERE CLIENT_ID NOT LIKE 'java-%'`); n != 0 {
		t.Errorf("%d locks were taken from Java nodes", n)
	}
}
