package lockdb_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lockdb"
)

func refuse(t *testing.T, db *lockdb.DB, a lockdb.Account, pause time.Duration) lockdb.Account {
	t.Helper()
	if err := db.Accounts().RefuseAccount(t.Context(), a, pause); err != nil {
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

func TestRefusalsOfAnAccountAreCounted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		if all := refusals(t, db, "erp/reader"); len(all) != 0 {
			t.Fatalf("an account that was never refused: %+v", all)
		}
		a := lockdb.Account{ID: "erp/reader", Node: "a", Reason: "ORA-01017", Salt: []byte{0, 1}, Digest: []byte("one"), Failures: 70}
		// A node's own clock has no say.
		a.RefusedAt, a.RetryAt = time.Unix(0, 0), time.Unix(0, 0)
		before, err := db.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		first := refuse(t, db, a, 0)
		if first.Failures != 1 || string(first.Salt) != "\x00\x01" || string(first.Digest) != "one" || first.Node != "a" || first.Reason != "ORA-01017" {
			t.Errorf("first refusal: %+v", first)
		}
		if first.RefusedAt.Before(before) || first.Now.Before(first.RefusedAt) || first.Now.After(first.RefusedAt.Add(time.Minute)) {
			t.Errorf("refused at %s, read at %s, begun at %s", first.RefusedAt, first.Now, before)
		}
		a.Node = "b"
		second := refuse(t, db, a, time.Hour)
		if second.Failures != 2 || second.Node != "b" || !second.RefusedAt.Equal(first.RefusedAt) {
			t.Errorf("second refusal: %+v", second)
		}
		if d := second.RetryAt.Sub(second.Now); (d - time.Hour).Abs() > time.Minute {
			t.Errorf("the pause is %s", d)
		}
		a.Node = "c"
		hasty := refuse(t, db, a, 2*time.Hour)
		if hasty.Failures != 2 || hasty.Node != "c" || hasty.RetryAt.Sub(second.RetryAt) < 50*time.Minute {
			t.Errorf("a refusal before the next was due: %+v", hasty)
		}
		for range 2 {
			if err := db.Accounts().AcceptAccount(t.Context(), a.ID, a.Digest); err != nil {
				t.Fatal(err)
			}
		}
		if all := refusals(t, db, a.ID); len(all) != 0 {
			t.Errorf("after a logon: %+v", all)
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
		refuse(t, db, a, 0)
		first := refuse(t, db, a, time.Hour)
		ticksPast(t, db, first.RefusedAt)
		if got := refuse(t, db, b, time.Hour); got.Failures != 1 || got.RefusedAt.Before(first.RefusedAt) {
			t.Errorf("another secret: %+v", got)
		}
		refuse(t, db, other, time.Hour)
		all := refusals(t, db, a.ID)
		if len(all) != 2 || all[0].Node != "a" || all[0].Failures != 2 || !all[0].RetryAt.Equal(first.RetryAt) || all[1].Node != "b" {
			t.Fatalf("the refusals, the oldest first: %+v", all)
		}
		if err := db.Accounts().AcceptAccount(t.Context(), b.ID, b.Digest); err != nil {
			t.Fatal(err)
		}
		if all := refusals(t, db, a.ID); len(all) != 1 || all[0].Node != "a" {
			t.Errorf("after a logon with the one secret: %+v", all)
		}
		refuse(t, db, b, time.Hour)
		for _, want := range []bool{true, false} {
			if found, err := db.Accounts().ForgetAccount(t.Context(), a.ID); found != want || err != nil {
				t.Errorf("forgotten: %v, %v; want %v", found, err, want)
			}
		}
		if all := refusals(t, db, a.ID); len(all) != 0 {
			t.Errorf("after all were forgotten: %+v", all)
		}
		if all := refusals(t, db, other.ID); len(all) != 1 {
			t.Errorf("the other account: %+v", all)
		}
	})
}
