package config_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/wiring"
)

// vault are the settings of a kind of lock provider.
type vault struct {
	URL      field.URL    `key:"url" required:"true" schemes:"vault"`
	URLFile  string       `key:"url-file" unit:"file name"`
	Password field.Secret `key:"password"`
	PassFile string       `key:"password-file" unit:"file name"`
	Depth    int          `key:"depth" default:"3" min:"1" max:"9" unit:"floors"`
}

func (v *vault) Target() (key, place string)        { return "url", v.URL.Reveal() }
func (*vault) Probe(context.Context) []kind.Finding { return nil }

func (v *vault) Check(r field.Report) {
	if v.Depth == 7 {
		r.Reject("depth", "there is no seventh floor; use 6")
	}
}

// cellar is another kind, without keys.
type cellar struct{}

func (cellar) Target() (key, place string)          { return "", "the cellar" }
func (cellar) Check(field.Report)                   {}
func (cellar) Probe(context.Context) []kind.Finding { return nil }

// provided loads a configuration with these lock providers, and returns what is reported.
func provided(t *testing.T, providers string, options ...func(*config.Options)) (*config.Config, string) {
	t.Helper()
	o := config.Options{Paths: []string{write(t, "locks: {providers: ["+providers+"]}"+minimal)}, Kinds: wiring.Kinds()}
	o.Kinds.LockProviders = []kind.Kind[kind.Settings]{
		{Name: "vault", Settings: func() kind.Settings { return new(vault) }}, {Name: "cellar", Settings: func() kind.Settings { return new(cellar) }},
	}
	for _, set := range options {
		set(&o)
	}
	cfg, warnings, err := config.Load(o)
	return cfg, strings.ReplaceAll(strings.TrimSpace(report(cfg, warnings, err)), o.Paths[0], "config.yaml")
}

func TestLockProviders(t *testing.T) {
	t.Parallel()
	const text = `{id: a, type: vault, url: "vault://u:${SECRET}@h/1", password: "${SECRET}"}, {id: b, type: cellar}`
	load := func(text, secret string) *config.Config {
		t.Helper()
		cfg, reported := provided(t, text, environ("SECRET="+secret))
		if reported != "" {
			t.Fatal(reported)
		}
		return cfg
	}
	before, after := load(text, canary), load(text, "other")
	v, ok := before.Locks.Providers[0].Settings.(*vault)
	if !ok || v.URL.Reveal() != "vault://u:"+canary+"@h/1" || v.Password.Reveal() != canary || v.Depth != 3 || before.Locks.Providers[1].ID != "b" {
		t.Errorf("loaded %+v", before.Locks.Providers)
	}
	if changed := config.Changed(before, after); before.Hash() != after.Hash() || !slices.Equal(changed, []string{"locks.providers.a.password", "locks.providers.a.url"}) {
		t.Errorf("another secret changed %v", changed)
	}
	after = load(strings.Replace(text, "{id: b, type: cellar}", "", 1), canary)
	if changed := config.Changed(before, after); before.Hash() == after.Hash() || !slices.Equal(changed, []string{"locks.providers.b"}) {
		t.Errorf("without a provider changed %v", changed)
	}
}

func TestBadLockProviders(t *testing.T) {
	t.Parallel()
	const first = `{id: a, type: vault, url: "vault://h"}, `
	none := func(o *config.Options) { o.Kinds.LockProviders = nil }
	everybody := func(o *config.Options) { o.OthersMayRead = func(fs.FileInfo) bool { return true } }
	strict := func(o *config.Options) {
		o.Kinds.CheckLocks = func(config.Locks) []config.LocksMistake {
			return []config.LocksMistake{{Key: "policies", Text: "no policy"}}
		}
	}
	for name, test := range map[string]struct {
		providers, want string
		with            func(*config.Options)
	}{
		"the name of the database": {providers: `{id: database, type: cellar}`, want: "config.yaml:1:26: the coordination database has this id, and is always there; choose another"},
		"an id twice":              {providers: first + `{id: a, type: cellar}`, want: `config.yaml:1:66: a lock provider "a" is there already, at config.yaml:1:26; use another`},
		"one place":                {providers: first + `{id: b, type: vault, url: "vault://h"}`, want: "config.yaml:1:87: a lock provider that keeps its locks in this place is there already, at config.yaml:1:47; use another"},
		"no type":                  {providers: `{id: a}`, want: "config.yaml:1:21: type is missing; set it"},
		"a type nearby":            {providers: `{id: a, type: valt, url: "vault://h"}`, want: `config.yaml:1:35: "valt" is not vault or cellar; use vault`},
		"a type without a kind":    {providers: `{id: a, type: redis}`, want: "config.yaml:1:35: this program has no kind of lock provider; remove this entry", with: none},
		"a key of another":         {providers: `{id: a, type: cellar, depth: 2}`, want: `config.yaml:1:43: unknown key "depth"; a lock provider of type cellar has none; remove it, or set type: vault`},
		"a check":                  {providers: `{id: a, type: vault, url: "vault://h", depth: 7}`, want: "config.yaml:1:67: there is no seventh floor; use 6"},
		"no section":               {providers: `a`, want: "config.yaml:1:21: "},
		"a password for all":       {providers: `{id: a, type: vault, url: "vault://u:hunter2@h"}`, want: "config.yaml:1:47: locks.providers[0].url holds a password, and every user of this host may read this file (mode 0600); run chmod 640 config.yaml, or use ${NAME} for it, or url-file", with: everybody},
		"a mistake in policies":    {providers: `{id: a}`, want: "config.yaml:1:1: no policy\nconfig.yaml:1:21: type is missing; set it", with: strict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var with []func(*config.Options)
			if test.with != nil {
				with = append(with, test.with)
			}
			_, reported := provided(t, test.providers, with...)
			if !strings.Contains(reported, test.want) || strings.Count(reported, "\n") != strings.Count(test.want, "\n") || strings.Contains(reported, "hunter2") {
				t.Errorf("reported\n%s\nwant\n%s", reported, test.want)
			}
		})
	}
}

// TestShippedLocks loads what config.yaml has of locks in a comment.
func TestShippedLocks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\n# locks:\n")
	section, _, _ := strings.Cut(after, "\n\n")
	section = "locks:\n" + strings.ReplaceAll(strings.TrimPrefix(section, "# "), "\n# ", "\n")
	section = strings.ReplaceAll(section, "/etc/observerd/redis-password", write(t, "secret"))
	cfg, warnings, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{write(t, section+"\n"+minimal)}})
	if err != nil || len(warnings) > 0 || len(cfg.Locks.Providers) != 1 {
		t.Fatalf("load: %v, warnings %v\n%s", err, warnings, section)
	}
	if got := fmt.Sprintf("%+v", cfg.Locks.Providers[0].Settings); strings.Count(got, "{1}") != 5 || !strings.Contains(got, "audit/processing:status-reconciliation-audit") {
		t.Errorf("keys of the older system in %s", got)
	}
}
