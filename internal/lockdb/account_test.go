package lockdb_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lockdb"
)

func refuse(t *testing.T, db *lockdb.DB, a lockdb.Account) lockdb.Account {
	t.Helper()
	if err := db.Accounts().RefuseAccount(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	for _, got := range refusals(t, db, a.ID) {
		if bytes.Equal(got.Digest, a.Digest) {
			return got
		}
	}
	t.Fatalf("account %s: the refusal of %q is not noted", a.ID, a.Digest)
	return lockdb.Account{}
}

func refusals(t *testing.T, db *lockdb.DB, id string) []lockdb.Account {
	t.Helper()
	all, err := db.Accounts().Account(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// ticksPast returns when the database's clock has passed that time: SQLite counts
// milliseconds, and takes less for a commit.
func ticksPast(t *testing.T, db *lockdb.DB, than time.Time) {
	t.Helper()
	eventually(t, func() error {
		now, err := db.Now(t.Context())
		if err == nil && !now.After(than) {
			err = errors.New("the clock of the database stands still")
		}
		return err
	})
}

func TestFirstRefusalOfASecretIsKept(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		if all := refusals(t, db, "erp/reader"); len(all) != 0 {
			t.Fatalf("an account that was never refused: %+v", all)
		}
		a := lockdb.Account{ID: "erp/reader", Node: "a", Reason: "ORA-01017", Salt: []byte{0, 1}, Digest: []byte("one")}
		a.RefusedAt = time.Unix(0, 0) // A node's own clock has no say.
		before, err := db.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		first := refuse(t, db, a)
		if string(first.Salt) != "\x00\x01" || string(first.Digest) != "one" || first.Node != "a" || first.Reason != "ORA-01017" {
			t.Errorf("first refusal: %+v", first)
		}
		if first.RefusedAt.Before(before) || first.RefusedAt.After(before.Add(time.Minute)) {
			t.Errorf("refused at %s, begun at %s", first.RefusedAt, before)
		}
		a.Node = "b"
		if second := refuse(t, db, a); second.Node != "a" || !second.RefusedAt.Equal(first.RefusedAt) {
			t.Errorf("second refusal: %+v", second)
		}
	})
}

// TestRefusalOfOneSecretLeavesThoseOfOthers has nodes with several secrets for
// one account, and another account beside it.
func TestRefusalOfOneSecretLeavesThoseOfOthers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		a := lockdb.Account{ID: "erp/reader", Node: "a", Reason: "ORA-01017", Salt: []byte{1}, Digest: []byte("wrong")}
		b := lockdb.Account{ID: "erp/reader", Node: "b", Reason: "ORA-01017", Salt: []byte{1}, Digest: []byte("typo")}
		other := lockdb.Account{ID: "wms/reader", Node: "c", Reason: "28P01", Salt: []byte{2}, Digest: []byte("wrong")}
		first := refuse(t, db, a)
		ticksPast(t, db, first.RefusedAt)
		if got := refuse(t, db, b); got.RefusedAt.Before(first.RefusedAt) {
			t.Errorf("another secret: %+v", got)
		}
		refuse(t, db, other)
		all := refusals(t, db, a.ID)
		if len(all) != 2 || all[0].Node != "a" || !all[0].RefusedAt.Equal(first.RefusedAt) || all[1].Node != "b" {
			t.Fatalf("the refusals, the oldest first: %+v", all)
		}
		for _, want := range []bool{true, false} {
			if found, err := db.Operations().Resume(t.Context(), "orders", by("alice"), a.ID); found != want || err != nil {
				t.Errorf("forgotten: %v, %v; want %v", found, err, want)
			}
		}
		if acts, err := db.Operations().Acts(t.Context(), lockdb.ActFilter{}); err != nil || len(acts) != 1 || acts[0].Action != "resume" || acts[0].Subject != "orders" || !strings.Contains(acts[0].Detail, a.ID) || acts[0].Actor != "alice" {
			t.Errorf("audit: %+v, %v", acts, err)
		}
		if all := refusals(t, db, a.ID); len(all) != 0 {
			t.Errorf("after all were forgotten: %+v", all)
		}
		if all := refusals(t, db, other.ID); len(all) != 1 {
			t.Errorf("the other account: %+v", all)
		}
	})
}
