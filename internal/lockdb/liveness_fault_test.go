package lockdb_test

import (
	"errors"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lockdb"
)

// TestFailingLookRestsAndComesBack takes a table away that each look reads, for
// long enough that a node which came back at once would do it without end. It
// says so once, and goes on when the table is there again.
func TestFailingLookRestsAndComesBack(t *testing.T) {
	t.Parallel()
	for dialect, newDatabase := range livenessDatabases {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			url := newDatabase(t)
			opened := time.Now()
			w := watch(t, url)
			rename := func(from, to string) {
				text := `ALTER TABLE ` + from + ` RENAME TO ` + to
				exec(t.Context(), t, url, map[string]string{"postgres": text, "sqlite": text})
			}
			began := time.Now()
			rename("obs_node", "obs_node_away")
			eventually(t, func() error {
				if w.logged("coming back") < 4 {
					return errors.New("the failing looks are not noticed")
				}
				return nil
			})
			// Three rests of a quarter, a half and a whole second lie between them;
			// on a machine that stood still for long there is none to begin with.
			if took := time.Since(began); took < 700*time.Millisecond {
				t.Errorf("came back four times within %s", took)
			}
			// A session that was there for five seconds has lasted.
			lasted := int(time.Since(opened) / (5 * time.Second))
			if n := w.logged("coming back", "level=INFO"); n == 0 || n > 1+2*lasted {
				t.Errorf("said %d times that it comes back", n)
			}
			rename("obs_node_away", "obs_node")
			h := holdElsewhere(t, url, never)
			h.kill()
			eventually(t, func() error {
				if !w.live.Gone(h.boot) {
					return errors.New("the dead node is not known to be dead")
				}
				return nil
			})
		})
	}
}

// TestAFreeThatIsNotCommittedIsNone has a constraint that fails as the deletion of a lease is
// committed, as on a full disk.
func TestAFreeThatIsNotCommittedIsNone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *lockdb.DB, url string) {
		w := watch(t, url)
		h := holdElsewhere(t, url, never)
		const tables = `
			CREATE TABLE full_disk (id integer PRIMARY KEY);
			CREATE TABLE kept (id integer REFERENCES full_disk (id) DEFERRABLE INITIALLY DEFERRED);`
		exec(t.Context(), t, url, map[string]string{
			"postgres": tables + `
			CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO kept VALUES (1); RETURN OLD; END $$;
			CREATE TRIGGER keep BEFORE DELETE ON int_lock FOR EACH ROW EXECUTE FUNCTION keep()`,
			"sqlite": tables + `CREATE TRIGGER keep BEFORE DELETE ON int_lock BEGIN INSERT INTO kept VALUES (1); END`,
		})
		h.kill()
		eventually(t, func() error {
			if w.logged("Lease without a holder not freed") == 0 {
				return errors.New("nobody says that the lease is not freed")
			}
			return nil
		})
		began := w.beats.Load()
		eventually(t, func() error {
			if w.beats.Load() < began+5 {
				return errors.New("nobody tries again")
			}
			return nil
		})
		if n := w.logged("Lease freed"); n != 0 {
			t.Errorf("said %d times that it was freed", n)
		}
		exec(t.Context(), t, url, map[string]string{"postgres": `DROP TRIGGER keep ON int_lock`, "sqlite": `DROP TRIGGER keep`})
		eventually(t, func() error {
			if w.logged("Lease freed") != 1 {
				return errors.New("nobody says that the lease was freed")
			}
			return nil
		})
	})
}

var livenessDatabases = map[string]func(t *testing.T) string{
	"sqlite": func(t *testing.T) string {
		t.Helper()
		return "sqlite:" + t.TempDir() + "/observerd.db"
	},
	"postgres": newPostgres,
}
