package app

import (
	"path/filepath"
	"testing"

	"github.com/observerd/observerd/internal/source/sqlite"
)

// A source whose URL is in a file may be SQLite, which orders numbers as such and has
// several forms of timestamps.
func TestPendingSourceOrdersAsItsDatabase(t *testing.T) {
	t.Parallel()
	p := &pending{open: func() (opened, error) {
		src, err := sqlite.Open(sqlite.Options{URL: "sqlite:" + filepath.Join(t.TempDir(), "late.db")})
		return opened{Database: src}, err
	}}
	if got := p.Restate("1800000000000", "seconds"); got != "1800000000000" {
		t.Errorf("before it is there: %q", got)
	}
	if _, err := p.opened(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if got := p.Restate("1800000000000", "seconds"); got != "1800000000" {
		t.Errorf("the mark in another form is %q", got)
	}
	if p.Compare("9", "10") >= 0 {
		t.Error("9 is not before 10")
	}
}
