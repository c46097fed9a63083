package access

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/sqlite"
)

// A source whose URL is in a file may be SQLite, which orders numbers as such and has
// several forms of timestamps.
func TestLateSourceOrdersAsItsDatabase(t *testing.T) {
	t.Parallel()
	missing := fmt.Errorf("%w: url", ErrMissingFile)
	s, err := NewOpener(Options{
		Find: func(string) (Target, error) {
			return Target{Open: func(source.Gate) (source.Database, error) {
				return sqlite.Open(sqlite.Options{URL: "sqlite:" + filepath.Join(t.TempDir(), "late.db")})
			}}, missing
		},
		Logger: slog.New(slog.DiscardHandler),
	}).OpenForPolls("erp", 1, NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.open(); observer.ClassOf(err) != observer.ClassUnreachable {
		t.Errorf("without the file: %v", err)
	}
	if got := s.Restate("1800000000000", "seconds"); got != "1800000000000" {
		t.Errorf("before it is there: %q", got)
	}
	missing = nil
	if _, err := s.open(); err != nil {
		t.Fatal(err)
	}
	if got := s.Restate("1800000000000", "seconds"); got != "1800000000" {
		t.Errorf("the mark in another form is %q", got)
	}
	if s.Compare("9", "10") >= 0 {
		t.Error("9 is not before 10")
	}
}
