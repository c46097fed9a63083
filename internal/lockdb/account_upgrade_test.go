package lockdb

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestRefusalsOfSchemaThreeAreKept migrates a database that has one row for each
// account, after which there may be one for each of its secrets.
func TestRefusalsOfSchemaThreeAreKept(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "observerd.db"), "postgres": pgtest.New(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := Open(Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			u := &upgrade{t: t, db: db, url: url}
			u.upTo(3)
			_, err = db.db.Exec(t.Context(), "former refusal", `
				INSERT INTO obs_account (account, salt, digest, failures, refused_at, retry_at, node, reason)
				VALUES ('erp/reader', $1, $2, 3, {ago 60}, {in 60}, 'a', 'ORA-01017')`, []byte{1}, []byte("wrong"))
			u.must(err)
			before, err := db.Accounts().Account(t.Context(), "erp/reader")
			u.must(err)
			u.must(db.Migrate(t.Context()))
			u.must(db.Accounts().RefuseAccount(t.Context(), Account{ID: "erp/reader", Salt: []byte{1}, Digest: []byte("typo")}))
			after, err := db.Accounts().Account(t.Context(), "erp/reader")
			u.must(err)
			if len(before) != 1 || len(after) != 2 {
				t.Fatalf("before %+v, after %+v", before, after)
			}
			was, is := before[0], after[0]
			if is.ID != was.ID || is.Node != "a" || is.Reason != "ORA-01017" || string(is.Salt) != "\x01" || string(is.Digest) != "wrong" ||
				!is.RefusedAt.Equal(was.RefusedAt) {
				t.Errorf("it was\n%+v, is\n%+v", was, is)
			}
		})
	}
}
