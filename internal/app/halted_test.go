package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/app"
)

// TestTruncatedFileHaltsItsSink cuts the file of a sink under a node at work, which
// then delivers nothing until a person has done one of the two that its log names.
func TestTruncatedFileHaltsItsSink(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(t *testing.T, p place, node *app.App, path string) error{
		"the file is moved away": func(_ *testing.T, _ place, _ *app.App, path string) error { return os.Rename(path, path+".cut") },
		"the node is restarted": func(t *testing.T, p place, node *app.App, _ string) error {
			stop(t, node)
			p.start(t)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t, "")
			path := filepath.Join(p.folder, "events.jsonl")
			node, log := p.startLogged(t)
			p.order(t, "BEFORE")
			eventually(t, p.orderStored(t, "BEFORE"))
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
			p.order(t, "AFTER")
			eventually(t, func() error {
				if text := log.String(); !strings.Contains(text, `"msg":"Sink halted"`) || !strings.Contains(text, "copytruncate") {
					return fmt.Errorf("the log does not say that the sink is halted:\n%s", text)
				}
				return nil
			})
			if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "AFTER") {
				t.Errorf("the halted sink has %q, %v", text, err)
			}
			if err := act(t, p, node, path); err != nil {
				t.Fatal(err)
			}
			eventually(t, func() error {
				text, err := os.ReadFile(path)
				if err == nil && !strings.Contains(string(text), "AFTER") {
					err = fmt.Errorf("order AFTER is not stored in %q", text)
				}
				return err
			})
		})
	}
}
