package lockdb_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/lockdb"
)

// A trigger of somebody else may say what it likes of the rows that are written.
func TestRefusedCommitHoldsNoValue(t *testing.T) {
	t.Parallel()
	// 3 rows take the single statement of PostgreSQL, 2500 its COPY.
	for _, n := range []int{3, 2500} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
				owner, dialect := raw(t, url)
				isPostgres := dialect == "postgres"
				triggers := map[string]string{"": `
					CREATE TRIGGER leak BEFORE INSERT ON obs_event WHEN NEW.subject = 'ORD-000002' BEGIN
						SELECT RAISE(ABORT, NEW.data); END`}
				if isPostgres {
					triggers = map[string]string{}
					for _, code := range []string{"23514", "42501", "P0001", "25006", "53100"} {
						triggers[code] = `
							CREATE OR REPLACE FUNCTION leak() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
								RAISE EXCEPTION '%', NEW.data USING ERRCODE = '` + code + `', CONSTRAINT = NEW.subject; END $$;
							CREATE OR REPLACE TRIGGER leak BEFORE INSERT ON obs_event FOR EACH ROW WHEN (NEW.subject = 'ORD-000002') EXECUTE FUNCTION leak()`
					}
				}
				s := db.Store(acquire(t, db, "order-observer-poll"))
				for code, trigger := range triggers {
					if _, err := owner.ExecContext(t.Context(), trigger); err != nil {
						t.Fatal(err)
					}
					_, err := s.Commit(t.Context(), chunk(cursorOf(t, s, "orders"), n))
					if err == nil || strings.Contains(err.Error(), "ORD-") || !strings.Contains(err.Error(), code) || !strings.Contains(err.Error(), "orders") {
						t.Errorf("%s: %v", code, err)
					}
					var pg *pgconn.PgError
					if isPostgres && (!errors.As(err, &pg) || pg.Code != code) {
						t.Errorf("%s: its code is lost in %v", code, err)
					}
				}
			})
		})
	}
}
