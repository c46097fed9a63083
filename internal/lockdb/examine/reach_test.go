package examine

import (
	"strings"
	"testing"

	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) {
	servertest.SideBySide(10)
	waittest.VerifyNoLeaks(pgtest.Wrap(m))
}

// TestSecondConnectionThatCannotBePrepared has a URL that can no longer be read when
// the only server turns out to be read-only: a certificate was removed meanwhile.
func TestSecondConnectionThatCannotBePrepared(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t) + "&default_transaction_read_only=on"
	x, err := newExaminer(Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	x.options.URL = url + "&sslmode=verify-full&sslrootcert=/nowhere"
	err = x.run(t.Context())
	if len(x.found.Blind) == 0 || !strings.Contains(x.found.Blind[0].Reason, "/nowhere") {
		t.Errorf("the certificate that is gone is not named: %v, %v", err, x.found.Blind)
	}
	if err := x.db.Close(); err != nil {
		t.Error(err)
	}
}
