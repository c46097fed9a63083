package compose_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/observerd/observerd/test/kit/daemon"
)

// crew are daemons by name.
type crew map[string]*member

// member is a daemon and the events that it has printed.
type member struct {
	*daemon.Process
	mu     sync.Mutex
	stdout bytes.Buffer
}

// Write takes what the daemon prints.
func (m *member) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stdout.Write(p)
}

// join starts a daemon with a configuration of the repository and polls that are
// due each second.
func (c crew) join(t *testing.T, name, config string, environ []string) *member {
	t.Helper()
	m := new(member)
	p, err := launch(t, daemon.Options{
		Binary: binary(t), Name: name, Folder: t.TempDir(), Args: []string{"--config", config, "run"}, Stdout: m,
		Env: append(environ, "OBSERVERD_HTTP_LISTEN=127.0.0.1:0", "OBSERVERD_SCHEDULER_OBSERVER_FIXED_DELAY=1s"),
	})
	must(t, err)
	m.Process = p
	c[name] = m
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, p.Ready(ctx))
	return m
}

// event is what is looked at of a printed one.
type event struct {
	ID   string         `json:"id"`
	Type string         `json:"type"`
	Data map[string]any `json:"data"`
}

// events are all that the crew has printed so far.
func (c crew) events() ([]event, error) {
	var all []event
	for name, m := range c {
		m.mu.Lock()
		text := bytes.Clone(m.stdout.Bytes())
		m.mu.Unlock()
		whole := text[:bytes.LastIndexByte(text, '\n')+1]
		for line := range bytes.Lines(whole) {
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				return nil, fmt.Errorf("%s prints %q: %w", name, line, err)
			}
			all = append(all, e)
		}
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
	for name, m := range c {
		if code, err := m.Stop(ctx); err != nil || code != 0 {
			t.Errorf("%s ends with %d: %v", name, code, err)
		}
	}
}

// checkOnce looks for events that were printed twice.
func (c crew) checkOnce(t *testing.T) {
	t.Helper()
	events, err := c.events()
	must(t, err)
	seen := make(map[string]bool)
	for _, e := range events {
		if seen[e.ID] {
			t.Errorf("event %s of type %s was printed twice", e.ID, e.Type)
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
