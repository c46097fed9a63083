package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/admin"
)

// steps reports a backfill of 100 seconds, of which a part was done before.
func steps(p *progress) {
	for second := range 101 {
		b := admin.Backfill{Observer: "orders", State: "running", Rows: 5000 + int64(second)*100, Events: int64(second), Part: 0.5 + float64(second)/200}
		if second == 0 {
			b.Part = -1 // Nothing was read yet.
		}
		if second == 42 {
			b.Waiting = "the type is polled first"
		}
		p.report(b)
		time.Sleep(time.Second)
	}
}

func TestProgressInLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		steps(newProgress(&out))
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		// One in five seconds, and one that says what is waited for.
		if len(lines) < 20 || len(lines) > 23 {
			t.Errorf("%d lines:\n%s", len(lines), out.String())
		}
		if lines[0] != "orders: 5000 rows, 0 events, 0 rows/s" {
			t.Errorf("the first line is %q", lines[0])
		}
		for _, want := range []string{
			"orders: 7500 rows, 25 events, 100 rows/s, 62%, about 1 min 15 s left\n",
			"71%, about 58 s left (the type is polled first)\n",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no line %q in\n%s", want, out.String())
			}
		}
	})
}
