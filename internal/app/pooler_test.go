package app_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/bouncertest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestNodeBehindAPooler polls through a PgBouncer in session mode. In transaction mode
// it ends, as do commands, where statements that were prepared do not stay apart.
func TestNodeBehindAPooler(t *testing.T) {
	t.Parallel()
	through := func(t *testing.T, mode bouncertest.Mode) place {
		o := bouncertest.Options{Mode: mode}
		if bouncertest.Prepares(t) {
			o.Settings = map[string]string{"max_prepared_statements": "0"}
		}
		return setup(t, bouncertest.Start(t, pgtest.New(t), o).URL())
	}
	t.Run("session", func(t *testing.T) {
		t.Parallel()
		p := through(t, bouncertest.Session)
		ready(t, p.start(t))
		eventually(t, p.delivered(t, p.operator(t), "stock", 20))
	})
	t.Run("transaction", func(t *testing.T) {
		t.Parallel()
		p := through(t, bouncertest.Transaction)
		node := p.start(t)
		select {
		case <-node.Done():
		case <-time.After(patience):
			t.Fatalf("it does not end: %s", node.Doing())
		}
		_, status := p.operator(t).Report(t.Context())
		d, doctor := admin.Doctor(t.Context(), p.config, 0)
		for what, err := range map[string]error{"run": node.Err(), "status": status} {
			if wiring.FaultOf(err) != wiring.Misconfigured || !strings.Contains(fmt.Sprint(err), "1.21 or newer with max_prepared_statements") {
				t.Errorf("%s: fault %v of %v", what, wiring.FaultOf(err), err)
			}
		}
		if doctor != nil || d.Problems == 0 {
			t.Errorf("the doctor has found %d problems, %v", d.Problems, doctor)
		}
		p = coordinated(t, p.config.Database.URL.Reveal(), func(u *url.URL) { u.RawQuery += "&search_path=public" })
		if _, err := admin.Doctor(t.Context(), p.config, 0); wiring.FaultOf(err) != wiring.Misconfigured || !strings.Contains(fmt.Sprint(err), "take search_path out of database.url") {
			t.Errorf("with a setting in the URL the doctor says: fault %v of %v", wiring.FaultOf(err), err)
		}
	})
}
