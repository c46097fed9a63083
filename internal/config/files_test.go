package config_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

// What two teams and those who run the nodes write, each in a file.
const (
	platform = `
database: {pool-size: 9}
scheduler:
  observer: {fixed-delay: 40s}
locks: {policies: [{id: a, max-ttl: 1h}]}
sinks:
  - {id: screen, type: stdout}
`
	red = `
scheduler: {red-observer: {fixed-delay: 50s}}
sources: {warehouse: {url: "sqlite:red.db"}}
observers:
  - {id: red, type: red, source: warehouse, table: t, key: k, timestamp: u, event: E}
`
	blue = `
scheduler: {observer: {concurrency: 3}}
sources: {shop: {url: "sqlite:blue.db"}}
observers:
  - {id: blue, type: order, source: shop, table: t, key: k, timestamp: u}
  - {id: other, type: order, source: warehouse, table: t, key: k, timestamp: u}
locks: {policies: [{id: b, max-ttl: 1h}]}
sinks:
  - {id: lines, type: file, path: blue.jsonl}
`
)

// folderOf writes files by their names, and returns their folder.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// from loads files and folders, and returns the mistakes without the folder they are in.
func from(folder string, paths ...string) (*config.Config, string) {
	for i := range paths {
		paths[i] = filepath.Join(folder, paths[i])
	}
	cfg, warnings, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: paths})
	return cfg, strings.ReplaceAll(report(nil, warnings, err), folder+"/", "")
}

func TestSeveralFilesAreOneConfiguration(t *testing.T) {
	t.Parallel()
	folder := folderOf(t, map[string]string{"a.yaml": platform, "b.yaml": red, "c.yaml": blue, ".hidden.yaml": "no: key", "README": "no: key"})
	cfg, problems := from(folder, "a.yaml", "b.yaml", "c.yaml")
	if problems != "" {
		t.Fatal(problems)
	}
	if cfg.Database.PoolSize != 9 || cfg.Scheduler.Concurrency != 3 || cfg.Scheduler.Types["red"].FixedDelay.String() != "50s" ||
		cfg.Scheduler.Types["order"].FixedDelay.String() != "40s" {
		t.Errorf("configuration\n%+v", cfg)
	}
	if got := slices.Sorted(maps.Keys(cfg.Sources)); !slices.Equal(got, []string{"shop", "warehouse"}) {
		t.Errorf("sources %v", got)
	}
	var ids []string
	for _, o := range cfg.Observers {
		ids = append(ids, o.ID)
	}
	for _, s := range cfg.Sinks {
		ids = append(ids, s.ID)
	}
	for _, p := range cfg.Locks.Policies {
		ids = append(ids, p.ID)
	}
	if got := strings.Join(ids, " "); got != "red blue other screen lines a b" {
		t.Errorf("entries of lists: %s", got)
	}
	// A folder is the same, and so is one file with all of it.
	whole, problems := from(folder, "")
	if problems != "" || whole.Hash() != cfg.Hash() || len(config.Changed(whole, cfg)) > 0 {
		t.Errorf("a folder differs: %s", problems)
	}
}

// Nothing overrides: a key is in one of the files. The mistake names both places.
func TestKeyInTwoFiles(t *testing.T) {
	t.Parallel()
	folder := folderOf(t, map[string]string{
		"a.yaml": platform, "b.yaml": red, "c.yaml": strings.NewReplacer("shop:", "warehouse:", "shop,", "warehouse,", "id: other", "id: red",
			"concurrency: 3", "fixed-delay: 40s", "id: lines, type: file, path: blue.jsonl", "id: screen, type: nothing").Replace(blue),
	})
	_, got := from(folder, "")
	if want := `c.yaml:2:24: the key "fixed-delay" is there already, at a.yaml:4:27; remove one of them
c.yaml:3:11: the key "warehouse" is there already, at b.yaml:3:11; remove one of them
c.yaml:6:10: an observer "red" is there already, at b.yaml:5:10; use another
c.yaml:9:10: a sink "screen" is there already, at a.yaml:7:10; use another
c.yaml:9:24: unknown value "nothing"; use stdout, file, sql, webhook or kafka
`; got != want {
		t.Errorf("reported\n%s\nwant\n%s", got, want)
	}
}

// Each mistake is in the file where it was made, and all are reported at once.
func TestMistakesOfSeveralFiles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files map[string]string
		paths []string
		want  string
	}{
		"keys": {map[string]string{"a.yaml": "log: {level: loud}\n", "b.yaml": "\nlog: {format: loud, colour: red}\n"}, []string{"b.yaml", "a.yaml"},
			`a.yaml:1:14: unknown value "loud"; use debug, info, warn or error
b.yaml:2:15: unknown value "loud"; use auto, tint or json
b.yaml:2:21: unknown key "colour"; use one of level, format, cycles
warning: b.yaml, a.yaml: there are no observers, so nothing will be polled; add some below observers
warning: b.yaml, a.yaml: there are no sinks, so events stay in the event log; add some below sinks
`},
		"syntax": {map[string]string{"a.yaml": "a: [", "b.yaml": "", "c.yaml": "log: {level: loud}"}, []string{"a.yaml", "b.yaml", "c.yaml", "d.yaml", "e"},
			`a.yaml:1:1: did not find expected node content; use a value here, or quote it
b.yaml:1:1: the file is empty; start from the config.yaml that is shipped
d.yaml: the file does not exist; create one with 'observerd init URL', or name another file
e: the file does not exist; create one with 'observerd init URL', or name another file
`},
		"a file twice":    {map[string]string{"a.yaml": platform}, []string{"a.yaml", "a.yaml"}, "a.yaml: this file is named twice; name it once\n"},
		"another ending":  {map[string]string{"a.yaml": platform, "b.yml": red}, []string{""}, `"b.yml" is not read, as its name does not end in .yaml; rename it, or move it away` + "\n"},
		"an empty folder": {map[string]string{"a.json": "{}"}, []string{""}, "no file in this folder has a name that ends in .yaml; add one, or name the right folder\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := folderOf(t, test.files)
			if _, got := from(folder, test.paths...); strings.TrimPrefix(got, folder+": ") != test.want {
				t.Errorf("reported\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// A source without its files is named by the file that has it, also when it is
// read again later.
func TestSourceOfOneOfSeveralFiles(t *testing.T) {
	t.Parallel()
	folder := folderOf(t, map[string]string{"a.yaml": platform, "b.yaml": strings.Replace(red, `url: "sqlite:red.db"`, "url-file: /no/such/file", 1)})
	cfg, warned := from(folder, "")
	const where = "b.yaml:3:33: sources.warehouse.url-file: the file does not exist; create it, or name the right file"
	if warned != "warning: "+where+"; until then the observers of this source fail\n" {
		t.Fatal(warned)
	}
	_, err := cfg.Sources["warehouse"].Resolve()
	if !errors.Is(err, config.ErrUnread) || strings.ReplaceAll(err.Error(), folder+"/", "") != where {
		t.Errorf("resolve: %v", err)
	}
}
