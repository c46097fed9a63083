package app_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/wiring"
)

// collecting is a kind of sink that no package of the program knows.
type collecting struct {
	Label string `key:"label" required:"true" unit:"text"`
	Most  int    `key:"most" default:"7" min:"1" max:"100" unit:"events"`
	// What the kinds to come need: all that a webhook is told.
	URL     field.URL               `key:"url" schemes:"https"`
	Secret  field.Secret            `key:"secret"`
	Headers map[string]field.Secret `key:"headers"`
	TLS     field.TLS               `key:"tls"`
	Body    field.Template          `key:"body" default:"{{.Subject}}"`

	mu   sync.Mutex
	seen map[string]bool
}

func (c *collecting) Target() (key, place string) { return "label", "collecting " + c.Label }

func (c *collecting) Check(r field.Report) {
	if _, err := c.Body.Execute(events.Event{}); err != nil {
		r.Reject("body", err.Error())
	}
}

func (*collecting) Probe(context.Context) []kind.Finding { return nil }

func (*collecting) Batch() int { return 500 }

func (c *collecting) Opener(sink.Options) func(context.Context, sink.Term) (sink.Sink, error) {
	return func(context.Context, sink.Term) (sink.Sink, error) { return c, nil }
}

func (c *collecting) Deliver(_ context.Context, batch []events.Event) (sink.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	part := batch[:min(len(batch), c.Most)]
	for _, e := range part {
		subject, err := c.Body.Execute(e)
		if err != nil {
			return sink.Result{}, err
		}
		c.seen[e.Stream+"/"+subject] = true
	}
	return sink.StoredAll(part), nil
}

func (*collecting) Close() error { return nil }

func (c *collecting) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen)
}

// TestAnotherKindOfSink adds a kind to the list, and nothing else: its keys are read,
// its mistakes reported, and it is fed.
func TestAnotherKindOfSink(t *testing.T) {
	t.Parallel()
	p := setup(t, "")
	kinds := wiring.Kinds()
	kinds.Sinks = append(kinds.Sinks, kind.Kind[kind.Settings]{Name: "collecting", Settings: func() kind.Settings { return &collecting{seen: make(map[string]bool)} }})
	load := func(sinks string) (*config.Config, error) {
		path := filepath.Join(p.folder, "kinds.yaml")
		text := strings.Replace(yaml, `{id: file, type: file, path: "%[2]s/events.jsonl"}`, sinks, 1)
		if err := os.WriteFile(path, fmt.Appendf(nil, text, "sqlite:"+p.folder+"/observerd.db", p.folder), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, _, err := config.Load(config.Options{Kinds: kinds, Paths: []string{path}})
		return cfg, err
	}
	for sinks, want := range map[string]string{
		`{id: mine, type: collecting}`:                                  "label is missing; set it",
		`{id: mine, type: collecting, label: a, url: "http://h"}`:       "use https://HOST",
		`{id: mine, type: collecting, label: a, tls: {ca-file: /none}}`: "sinks[0].tls.ca-file: the file does not exist",
		`{id: mine, type: collecting, label: a, body: "{{.Nothing}}"}`:  "line 1 of the template: <.Nothing> has no value here",
		`{id: mine, type: collecting, label: a, most: 0}`:               "not a number of events from 1 to 100",
		`{id: mine, type: collecting, label: a, path: b}`:               "a sink of type collecting has none; remove it, or set type: file",
		`{id: mine, type: collectin, label: a}`:                         "use collecting",
		`{id: mine, type: stdout, label: a}`:                            "a sink of type stdout has none; remove it, or set type: collecting",
		`{id: mine, type: stdout}, {id: yours, type: stdout}`:           "a sink that writes to this place is there already",
		`{id: mine, type: collecting, label: a, colour: red}`:           "use one of id, type, label, most, url, secret, headers, tls, body, filter, on-poison, batch-size, batch-bytes",
		`{id: mine, type: file, path: ""}`:                              "path is empty; use the name of a file",
		`{id: mine, type: [collecting], label: a}`:                      "type is",
		`{id: mine, label: a}`:                                          "type is missing",
	} {
		if _, err := load(sinks); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: reported %v, want %q", sinks, err, want)
		}
	}
	cfg, err := load(`{id: mine, type: collecting, label: here, url: "https://h", secret: hunter2, headers: {a: hunter2}, body: "of {{.Subject}}"}`)
	if err != nil {
		t.Fatal(err)
	}
	sink, ok := cfg.Sinks[0].Settings.(*collecting)
	if !ok {
		t.Fatalf("settings %T", cfg.Sinks[0].Settings)
	}
	if sink.Label != "here" || sink.Most != 7 || sink.URL.Reveal() != "https://h" || sink.Secret.Reveal() != "hunter2" || sink.Headers["a"].Reveal() != "hunter2" {
		t.Errorf("decoded %q, %d, %s", sink.Label, sink.Most, sink.URL)
	}
	if printed := fmt.Sprintf("%+v", cfg); strings.Contains(printed, "hunter2") {
		t.Errorf("printed %s", printed)
	}
	p.config = cfg
	p.start(t)
	eventually(t, func() error {
		if n := sink.count(); n < 50 {
			return fmt.Errorf("%d events reached the sink", n)
		}
		return nil
	})
}
