package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/status"
)

// TestReportFitsTheHeight has 14 observers, the last of which fails, on terminals of all heights.
func TestReportFitsTheHeight(t *testing.T) {
	t.Parallel()
	r := status.Report{At: time.Now(), Nodes: []status.Node{{Name: "a", Version: "1"}, {Name: "b", Version: "1"}}, Types: []status.Type{{Name: "order"}}}
	for i := range 14 {
		r.Observers = append(r.Observers, status.Observer{ID: fmt.Sprintf("orders-%02d", i), State: status.StateActive})
	}
	r.Observers[13].LastError = "query: no table"
	for i := range 3 {
		r.Sinks = append(r.Sinks, status.Sink{Sink: fmt.Sprintf("file-%d", i)})
	}
	r.Verdict = r.Judge()
	for height := 7; height < 60; height++ {
		var text bytes.Buffer
		if err := printReport(&text, false, r, height); err != nil {
			t.Fatal(err)
		}
		shown := text.String()
		if lines := strings.Count(shown, "\n"); lines > height {
			t.Errorf("%d lines instead of %d:\n%s", lines, height, shown)
		}
		if !strings.HasPrefix(shown, "failing: 1 thing needs attention\n") || !strings.Contains(shown, "\nobserver orders-13  failing") {
			t.Errorf("no verdict, or not what needs attention, in %d lines:\n%s", height, shown)
		}
		if height >= 13 && !regexp.MustCompile(`LAST ERROR\norders-13 `).MatchString(shown) {
			t.Errorf("the failure is not the first observer in %d lines:\n%s", height, shown)
		}
		for _, name := range []string{"SINKS", "NODES", "TYPES"} {
			if !strings.Contains(shown, name) {
				t.Errorf("%s is neither shown nor named in %d lines:\n%s", name, height, shown)
			}
		}
	}
	for height, want := range map[int]string{
		16: "orders-03 .*\n… and 9 more\n… and more: SINKS, NODES, TYPES\n$",
		26: "orders-12 .*\n… and more: SINKS, NODES, TYPES\n$",
		50: "\nSINKS\n(.*\n)*NODES\n(.*\n)*TYPES\n.*\norder .*\n$",
	} {
		var text bytes.Buffer
		if err := printReport(&text, false, r, height); err != nil || !regexp.MustCompile(want).MatchString(text.String()) {
			t.Errorf("%v, no %q in %d lines:\n%s", err, want, height, &text)
		}
	}
}
