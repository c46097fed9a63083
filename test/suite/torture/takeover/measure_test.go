package takeover_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/testbed"
	"github.com/observerd/observerd/test/suite/torture/takeover"
)

// TestMeasure strikes real processes once in two ways. It judges the
// instrument, and that the TTL plays no part where death can be seen; how fast
// a takeover is belongs to a quiet machine.
func TestMeasure(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	binary, err := testbed.Binary(t.Context(), "", folder)
	if err != nil {
		t.Fatal(err)
	}
	b, err := testbed.Open(t.Context(), testbed.Options{Binary: binary, Folder: filepath.Join(folder, "testbed"), Progress: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	const ttl = 2 * time.Minute
	f, err := takeover.Measure(t.Context(), takeover.Options{
		Testbed: b, Samples: map[takeover.Kind]int{takeover.Kill: 1, takeover.Sleep: 1}, Interval: 5 * time.Second,
		TTL: ttl, ShortTTL: 6 * time.Second, Lanes: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", f.Markdown())
	if len(f.Samples) != 2 {
		t.Fatalf("samples %+v, want two", f.Samples)
	}
	for _, s := range f.Samples {
		switch {
		case s.Kind == takeover.Kill && (s.Took > ttl/2 || s.Rule != "session-gone"):
			t.Errorf("a node that was killed was replaced after %s, by the rule %q", s.Took, s.Rule)
		case s.Kind == takeover.Sleep && (s.Took < 3*time.Second || s.Rule != "ttl"):
			t.Errorf("a node that sleeps was replaced after %s, by the rule %q", s.Took, s.Rule)
		}
	}
	if f.Events != f.Rows || f.Repeated != 0 {
		t.Errorf("of %d rows there are %d events, %d of them repeated", f.Rows, f.Events, f.Repeated)
	}
}
