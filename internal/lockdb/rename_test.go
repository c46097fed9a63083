package lockdb_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
)

// renaming takes the rows that [chunk] makes for others, so that their keys move in
// their order, over what is read at once.
func renaming(c observer.Cursor) lockdb.Renaming {
	return lockdb.Renaming{Refusal: c.Refusal, Form: "normal", Fingerprint: "marked", Rename: func(key string) string {
		if number, ok := strings.CutPrefix(key, "ORD-"); ok && number[len(number)-1] == '0' {
			return "A" + number
		}
		return strings.Replace(key, "ORD-", "Z", 1)
	}}
}

// stopped makes a stream of so many rows that has refused its columns.
func stopped(t *testing.T, s *lockdb.Store, n int) observer.Cursor {
	t.Helper()
	ch := chunk(cursorOf(t, s, "orders"), n)
	ch.Refusal = `{"kind":"columns"}`
	return mustCommit(t, s, ch)
}

// TestKeysAreRenamed renames more keys than are read at once, and none of another
// stream.
func TestKeysAreRenamed(t *testing.T) {
	t.Parallel()
	const rows = 25_000
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		grant := acquire(t, db, "order-observer-poll")
		s := db.Store(grant)
		mustCommit(t, s, chunk(cursorOf(t, s, "others"), 3))
		c := stopped(t, s, rows)
		n := renaming(c)
		if all, renamed, err := db.Operations().CountRenamed(t.Context(), "orders", n.Rename); err != nil || all != rows || renamed != rows {
			t.Errorf("%d of %d keys are counted, %v", renamed, all, err)
		}
		act := lockdb.Act{Actor: "alice", Action: "accept", Subject: "orders", Detail: "wider"}
		if err := db.Operations().RenameKeys(t.Context(), grant, act, n); err != nil {
			t.Fatal(err)
		}
		if n := count(t, url, `SELECT count(*) FROM obs_observed WHERE key LIKE 'A%0' OR key LIKE 'Z%'`); n != rows {
			t.Errorf("%d keys are renamed, not %d", n, rows)
		}
		if n := count(t, url, `SELECT count(*) FROM obs_observed WHERE key LIKE 'ORD-%'`); n != 3 {
			t.Errorf("%d keys are as they were, not 3", n)
		}
		after := cursorOf(t, s, "orders")
		if after.KeyForm != "normal" || after.Fingerprint != "marked" || after.Accepted != c.Refusal || after.Version != c.Version+1 || after.Rows != rows {
			t.Errorf("cursor: %+v", after)
		}
		known, err := s.Observed(t.Context(), after, []string{"A000010", "Z000011", "ORD-000010"})
		if err != nil || len(known) != 2 || known["A000010"].Number != 10 || known["Z000011"].Number != 11 {
			t.Errorf("known: %+v, %v", known, err)
		}
		if acts, err := db.Operations().Acts(t.Context(), lockdb.ActFilter{Limit: 1}); err != nil || acts[0].Detail != "wider; 25000 keys renamed" {
			t.Errorf("audit: %+v, %v", acts, err)
		}
		if all, renamed, err := db.Operations().CountRenamed(t.Context(), "orders", n.Rename); err != nil || all != rows || renamed != 0 {
			t.Errorf("then %d of %d keys are counted, %v", renamed, all, err)
		}
	})
}

// TestKeysAreRenamedAllOrNone shows what refuses a renaming, and that nothing is left
// of it.
func TestKeysAreRenamedAllOrNone(t *testing.T) {
	t.Parallel()
	const rows = 12_000
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		grant := acquire(t, db, "order-observer-poll")
		s := db.Store(grant)
		c := stopped(t, s, rows)
		ended := grant
		ended.Term = strings.Repeat("0", 36)
		meeting, moved := renaming(c), renaming(c)
		meeting.Rename = func(key string) string { return strings.Replace(key, "011999", "012000", 1) }
		moved.Refusal = `{"kind":"gone"}`
		for name, test := range map[string]struct {
			grant lock.Grant
			n     lockdb.Renaming
			want  error
		}{
			"two keys become one":        {grant, meeting, lockdb.ErrKeysMeet},
			"the lease has ended":        {ended, renaming(c), lock.ErrFenced},
			"something else was refused": {grant, moved, lockdb.ErrRefusalMoved},
		} {
			err := db.Operations().RenameKeys(t.Context(), test.grant, lockdb.Act{Actor: "alice", Action: "accept", Subject: "orders"}, test.n)
			if !errors.Is(err, test.want) || strings.Contains(err.Error(), "01200") {
				t.Errorf("%s: %v", name, err)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancelled := renaming(c)
		cancelled.Rename = func(key string) string {
			cancel(lock.ErrLost)
			return renaming(c).Rename(key)
		}
		if err := db.Operations().RenameKeys(ctx, grant, lockdb.Act{Actor: "alice", Action: "accept", Subject: "orders"}, cancelled); !errors.Is(err, lock.ErrLost) {
			t.Errorf("the lease is lost meanwhile: %v", err)
		}
		if n := count(t, url, `SELECT count(*) FROM obs_observed WHERE key LIKE 'ORD-%'`); n != rows {
			t.Errorf("%d keys are as they were, not %d", n, rows)
		}
		if got := cursorOf(t, s, "orders"); got != c {
			t.Errorf("cursor: %+v, want %+v", got, c)
		}
		if acts, err := db.Operations().Acts(t.Context(), lockdb.ActFilter{Limit: 1}); err != nil || len(acts) != 0 {
			t.Errorf("audit: %+v, %v", acts, err)
		}
	})
}
