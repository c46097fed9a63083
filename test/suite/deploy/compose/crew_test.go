package compose_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/observerd/observerd/test/kit/daemon"
)

// crew are daemons by name that share a volume.
type crew struct {
	volume string
	nodes  map[string]*daemon.Process
}

func newCrew(t *testing.T) crew { return crew{t.TempDir(), make(map[string]*daemon.Process)} }

// join starts a daemon with a configuration of the repository and polls that are
// due each second.
func (c crew) join(t *testing.T, name, config string, environ []string) {
	t.Helper()
	p, err := launch(t, daemon.Options{
		Binary: binary(t), Name: name, Folder: c.volume, Args: []string{"--config", config, "run"},
		Env: append(environ, "OBSERVERD_HTTP_LISTEN=127.0.0.1:0", "OBSERVERD_SCHEDULER_OBSERVER_FIXED_DELAY=1s"),
	})
	must(t, err)
	c.nodes[name] = p
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, p.Ready(ctx))
}

// event is what is looked at of one.
type event struct {
	ID   string         `json:"id"`
	Type string         `json:"type"`
	Data map[string]any `json:"data"`
}

// events are all that the crew has written so far.
func (c crew) events() (all []event, err error) {
	text, err := os.ReadFile(filepath.Join(c.volume, "events.jsonl"))
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text[:bytes.LastIndexByte(text, '\n')+1]) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("a line is %q: %w", line, err)
		}
		all = append(all, e)
	}
	return all, nil
}

// tell waits for so many events of a type.
func (c crew) tell(t *testing.T, of string, most int) {
	t.Helper()
	eventually(t, func() error {
		events, err := c.events()
		n := 0
		for _, e := range events {
			if e.Type == of {
				n++
			}
		}
		if err != nil {
			return err
		}
		return failedIf(n < most, "%d events of type %s, want %d", n, of, most)
	})
}

// stop ends all daemons in peace.
func (c crew) stop(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for name, m := range c.nodes {
		if code, err := m.Stop(ctx); err != nil || code != 0 {
			t.Errorf("%s ends with %d: %v", name, code, err)
		}
	}
}

// checkOnce looks for events that were written twice.
func (c crew) checkOnce(t *testing.T) {
	t.Helper()
	events, err := c.events()
	must(t, err)
	seen := make(map[string]bool)
	for _, e := range events {
		if seen[e.ID] {
			t.Errorf("event %s of type %s was written twice", e.ID, e.Type)
		}
		seen[e.ID] = true
	}
}

// urls are those of a configuration, as they are written.
type urls struct {
	Database struct {
		URL string `yaml:"url"`
	} `yaml:"database"`
	Sources map[string]struct {
		URL string `yaml:"url"`
	} `yaml:"sources"`
}

func parsed(t *testing.T, path string) urls {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(path))
	must(t, err)
	var u urls
	must(t, yaml.Unmarshal(text, &u))
	return u
}
