package lockdb_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/lockdb"
)

// refusal is what makes the database refuse a commit with that SQLSTATE.
type refusal struct{ code, statement string }

func refusalsOfPostgres() (all []refusal) {
	for _, code := range []string{"23514", "42501", "P0001", "25006", "53100"} {
		all = append(all, refusal{code, `
			CREATE OR REPLACE FUNCTION leak() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				RAISE EXCEPTION '%', NEW.data USING ERRCODE = '` + code + `', CONSTRAINT = NEW.subject; END $$;
			CREATE OR REPLACE TRIGGER leak BEFORE INSERT ON obs_event FOR EACH ROW WHEN (NEW.subject = 'ORD-000002') EXECUTE FUNCTION leak()`})
	}
	all = append(all, refusal{"23514", `DROP TRIGGER leak ON obs_event; ALTER TABLE obs_event ADD CONSTRAINT leak CHECK (subject <> 'ORD-000002')`})
	for code, expression := range map[string]string{
		"42P01": "subject::regclass IS NOT NULL",
		"42601": "to_tsquery(subject || ' ' || subject) IS NOT NULL",
		"42704": "current_setting('x.' || subject) IS NOT NULL",
		"22P02": "subject::int IS NOT NULL",
	} {
		all = append(all, refusal{code, `ALTER TABLE obs_event DROP CONSTRAINT leak, ADD CONSTRAINT leak CHECK (` + expression + `)`})
	}
	return all
}

// A trigger or a constraint of another role may say anything about the written rows.
func TestRefusedCommitHoldsNoValue(t *testing.T) {
	t.Parallel()
	// 3 rows take the single statement of PostgreSQL, 2500 its COPY.
	for _, n := range []int{3, 2500} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
				owner, dialect := raw(t, url)
				isPostgres := dialect == "postgres"
				refusals := []refusal{{"", `
					CREATE TRIGGER leak BEFORE INSERT ON obs_event WHEN NEW.subject = 'ORD-000002' BEGIN
						SELECT RAISE(ABORT, NEW.data); END`}}
				if isPostgres {
					refusals = refusalsOfPostgres()
				}
				s := db.Store(acquire(t, db, "order-observer-poll"))
				for _, r := range refusals {
					code := r.code
					if _, err := owner.ExecContext(t.Context(), r.statement); err != nil {
						t.Fatal(err)
					}
					_, err := s.Commit(t.Context(), chunk(cursorOf(t, s, "orders"), n))
					if err == nil || strings.Contains(strings.ToUpper(err.Error()), "ORD-") || !strings.Contains(err.Error(), code) || !strings.Contains(err.Error(), "orders") {
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
