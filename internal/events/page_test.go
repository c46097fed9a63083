package events_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/events"
)

// TestPage compares docs/events.md with what is encoded: its examples are events to the
// byte, and its table has their attributes and no others.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{"data_base64": true}
	examples := 0
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, `{"specversion"`) {
			continue
		}
		examples++
		e, err := events.Decode([]byte(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if got := string(events.AppendJSON(nil, &e)); got != line {
			t.Errorf("the page has\n%s\nwhich is encoded as\n%s", line, got)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &members); err != nil {
			t.Fatal(err)
		}
		for name := range members {
			seen[name] = true
		}
	}
	if examples < 4 {
		t.Errorf("the page has %d examples, want one for each change and a snapshot", examples)
	}
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, row[1])
	}
	for name := range seen {
		if !slices.Contains(listed, name) {
			t.Errorf("the page does not describe %s", name)
		}
	}
	if len(listed) != len(seen) {
		t.Errorf("the page describes %q, events have %d attributes", listed, len(seen))
	}
}
