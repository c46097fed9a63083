package wiring

import (
	"log/slog"
	"testing"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/source/access"
	"github.com/observerd/observerd/test/kit/lockdbtest"
)

func TestAccountIsGivenUpForAWrongPasswordAlone(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]bool{
		"ORA-01017: denied": true, "ORA-01005": true, "28P01: denied": true, "1045: denied": true, "ER_ACCESS_DENIED_ERROR: denied": true,
		"ORA-28000: locked": false, "ORA-28001: expired": false, "logon denied: ORA-01017": false, "": false,
	} {
		if got := access.GivenUp(lockdb.Account{Reason: reason, Failures: access.MaxProbes + 1}, wrongPassword); got != want {
			t.Errorf("%q: given up %v", reason, got)
		}
		if access.GivenUp(lockdb.Account{Reason: reason, Failures: access.MaxProbes}, wrongPassword) {
			t.Errorf("%q: given up before the last probe", reason)
		}
	}
}

// TestReportOfAnAccountThatIsGivenUp has one refused until no node tries it any more.
func TestReportOfAnAccountThatIsGivenUp(t *testing.T) {
	t.Parallel()
	for backend, url := range map[string]string{"sqlite": lockdbtest.SQLite(t), "postgres": lockdbtest.Postgres(t, "")} {
		db, err := lockdb.Open(lockdb.Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		a := lockdb.Account{ID: "wms/reader", Reason: "28P01: denied", Salt: []byte{1}, Digest: []byte{1}}
		for failures := 1; failures <= access.MaxProbes+1; failures++ {
			if err := db.Accounts().RefuseAccount(t.Context(), a, 0); err != nil {
				t.Fatal(err)
			}
			r, err := Report(t.Context(), db)
			if err != nil || len(r.Accounts) != 1 || r.Accounts[0].Never != (failures > access.MaxProbes) {
				t.Errorf("%s: after %d refusals: %+v, %v", backend, failures, r.Accounts, err)
			}
		}
	}
}
