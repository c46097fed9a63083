package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/sink/file"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/lockdbtest"
)

// TestProbedSinks has a sink whose file is another program's, one that is no file, and one
// that can be used. Validate and doctor report the former, and write to none.
func TestProbedSinks(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	foreign := filepath.Join(folder, "foreign")
	if err := os.WriteFile(foreign, []byte("a line of a log\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := load(t, fmt.Appendf(nil, `
database: {url: %q}
sinks:
  - {id: foreign, type: file, path: %q}
  - {id: device, type: file, path: /dev/null}
  - {id: absent, type: file, path: %q}
`, lockdbtest.SQLite(t), foreign, filepath.Join(folder, "absent")))
	before := files(t, folder)
	v := admin.Validate(t.Context(), admin.ValidateOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler), Timeout: time.Minute})
	if err := v.Err(); !errors.Is(err, file.ErrForeign) || wiring.FaultOf(err) != wiring.Misconfigured || !slices.Equal(v.NotReady(), []string{"sink foreign", "sink device"}) {
		t.Errorf("validate says %v of %v", err, v.NotReady())
	}
	d, err := admin.Doctor(t.Context(), cfg, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range d.Findings {
		if strings.HasPrefix(f.Check, "sink ") {
			found = append(found, string(f.Severity)+" "+f.Check+" "+f.Saw)
		}
	}
	if len(found) != 2 || !strings.HasPrefix(found[0], "problem sink foreign "+foreign+": it does not end with an event of observerd") ||
		found[1] != "problem sink device /dev/null is not a regular file; name another one" {
		t.Errorf("the doctor says %q", found)
	}
	if after := files(t, folder); after != before {
		t.Errorf("the look changed\n%s\ninto\n%s", before, after)
	}
}

// probed are settings that say what they are told to.
type probed struct {
	found func(ctx context.Context) []kind.Finding
}

func (*probed) Target() (key, place string)                { return "", "" }
func (*probed) Check(field.Report)                         {}
func (p *probed) Probe(ctx context.Context) []kind.Finding { return p.found(ctx) }

// TestFaultsOfProbes has a warning, a server that is down and one that does not answer.
func TestFaultsOfProbes(t *testing.T) {
	t.Parallel()
	finding := func(warning bool, err error) func(context.Context) []kind.Finding {
		return func(context.Context) []kind.Finding { return []kind.Finding{{Warning: warning, Err: err}} }
	}
	for name, test := range map[string]struct {
		found    func(context.Context) []kind.Finding
		want     wiring.Fault
		warnings int
	}{
		"nothing":   {func(context.Context) []kind.Finding { return nil }, wiring.Failure, 0},
		"a warning": {finding(true, errors.New("slow")), wiring.Failure, 1},
		"a mistake": {finding(false, errors.New("no topic")), wiring.Misconfigured, 0},
		"a right":   {finding(false, fmt.Errorf("topic: %w", os.ErrPermission)), wiring.Denied, 0},
		"silence": {func(ctx context.Context) []kind.Finding {
			<-ctx.Done()
			return []kind.Finding{{Err: ctx.Err()}}
		}, wiring.Unavailable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := load(t, fmt.Appendf(nil, "database: {url: %q}\nsinks: [{id: a, type: stdout}]\n", lockdbtest.SQLite(t)))
			cfg.Sinks = []config.Sink{{ID: "a", Settings: &probed{test.found}}}
			v := admin.Validate(t.Context(), admin.ValidateOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler), Timeout: 2 * time.Second})
			if err := v.Err(); wiring.FaultOf(err) != test.want || (err != nil) != (test.want != wiring.Failure) || v.Warnings() != test.warnings {
				t.Errorf("fault %v, %d warnings: %v", wiring.FaultOf(err), v.Warnings(), err)
			}
		})
	}
}
