package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/simtest"
)

// mutant is a configuration with one mistake, or none that matters.
type mutant struct{ what, text string }

// junk stands in the place of any value.
var junk = []string{
	`""`, `" "`, `" x "`, "-1", "0", "1e99", "30 parsecs", "yes please", "[]", "[a, [b]]", "{}", "{a: b}", "~", "${NO_SUCH_NAME}", "${",
	`"a\0b"`, "2026-02-30", "99999999999999999999", "*", "%", "größe", "a.b.c.d", "..", strings.Repeat("x", 3000),
}

// urls are changes of a URL of a server, or of a file.
var urls = []func(text string) string{
	func(text string) string { return strings.Replace(text, "://", ":/", 1) },
	func(text string) string { return strings.Replace(text, "postgres", "postgras", 1) },
	func(text string) string { return strings.Replace(text, "sqlite:", "sqlit:", 1) },
	func(text string) string { return "jdbc:" + text },
	func(text string) string { return strings.Replace(text, "@", "@@", 1) },
	func(text string) string {
		return changedURL(text, func(u *url.URL) { u.Host = u.Hostname() + ":99999" })
	},
	func(text string) string { return changedURL(text, func(u *url.URL) { u.Host = "127.0.0.1:1" }) },
	func(text string) string { return changedURL(text, func(u *url.URL) { u.Host = "" }) },
	func(text string) string { return changedURL(text, func(u *url.URL) { u.Path += "x" }) },
	func(text string) string { return changedURL(text, func(u *url.URL) { u.Path = "" }) },
	func(text string) string { return changedURL(text, func(u *url.URL) { u.User = nil }) },
	func(text string) string {
		return changedURL(text, func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), secret) })
	},
	func(text string) string {
		return changedURL(text, func(u *url.URL) { u.User = url.UserPassword("nobody", secret) })
	},
	func(text string) string { return changedURL(text, func(u *url.URL) { u.RawQuery = "colour=blue" }) },
	func(text string) string {
		return changedURL(text, func(u *url.URL) { u.RawQuery = "sslmode=verify-full" })
	},
}

func changedURL(text string, change func(u *url.URL)) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	change(u)
	return u.String()
}

// misspelt are texts with one typing mistake.
func misspelt(text string) []string {
	letters := []rune(text)
	if len(letters) < 2 {
		return []string{text + "x"}
	}
	half := len(letters) / 2
	swapped := slices.Clone(letters)
	swapped[half-1], swapped[half] = swapped[half], swapped[half-1]
	return []string{string(append(slices.Clone(letters[:half]), letters[half+1:]...)), string(swapped), strings.ToUpper(text), text + "s"}
}

// mutants changes each key, value, entry and line of a configuration by itself.
func mutants(t *testing.T, text string) []mutant {
	t.Helper()
	var all []mutant
	var document yaml.Node
	must(t, yaml.Unmarshal([]byte(text), &document))
	add := func(what string) {
		made, err := yaml.Marshal(&document)
		must(t, err)
		all = append(all, mutant{what, string(made)})
	}
	mutateNode(&document, "", add)
	lines := strings.SplitAfter(text, "\n")
	for n, line := range lines {
		before, after := strings.Join(lines[:n], ""), strings.Join(lines[n+1:], "")
		where := fmt.Sprintf("line %d ", n+1)
		all = append(all, mutant{where + "is gone", before + after}, mutant{where + "is there twice", before + line + line + after},
			mutant{where + "has a tab", before + "\t" + line + after}, mutant{where + "is further in", before + " " + line + after},
			mutant{where + "ends in the middle", before + line[:len(line)/2]})
		for _, letter := range []string{":", `"`, "{", "}", "[", "]", ","} {
			if strings.Contains(line, letter) {
				all = append(all, mutant{where + "has no " + letter, before + strings.Replace(line, letter, "", 1) + after})
			}
		}
	}
	return all
}

// mutateNode calls made for each change of a node and of what is in it, and undoes it.
func mutateNode(n *yaml.Node, path string, made func(what string)) {
	content, value := n.Content, *n
	with := func(what string, changed []*yaml.Node) {
		n.Content = changed
		made(path + " " + what)
		n.Content = content
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(content); i += 2 {
			key := content[i].Value
			with("without "+key, slices.Concat(content[:i], content[i+2:]))
			with("twice "+key, slices.Concat(content, content[i:i+2]))
			for _, name := range misspelt(key) {
				content[i].Value = name
				made(path + " with " + name)
			}
			content[i].Value = key
			mutateNode(content[i+1], path+"."+key, made)
		}
	case yaml.SequenceNode:
		for i := range content {
			with(fmt.Sprintf("without [%d]", i), slices.Concat(content[:i], content[i+1:]))
			with(fmt.Sprintf("twice [%d]", i), slices.Concat(content, content[i:i+1]))
			mutateNode(content[i], fmt.Sprintf("%s[%d]", path, i), made)
		}
	case yaml.ScalarNode:
		texts := misspelt(n.Value)
		if strings.Contains(path, "url") {
			for _, change := range urls {
				texts = append(texts, change(n.Value))
			}
		}
		for _, text := range texts {
			n.Value, n.Tag, n.Style = text, "!!str", yaml.DoubleQuotedStyle
			made(path + " = " + text)
			*n = value
		}
	case yaml.DocumentNode:
		mutateNode(content[0], path, made)
		return
	}
	for _, text := range junk {
		var other yaml.Node
		if err := yaml.Unmarshal([]byte(text), &other); err != nil {
			other = yaml.Node{Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: text, Tag: "!!str", Style: yaml.DoubleQuotedStyle}}}
		}
		*n = *other.Content[0]
		made(path + " := " + text[:min(len(text), 20)])
		*n = value
	}
}

// The forms of what validate says.
var (
	placed  = regexp.MustCompile(`^(?:\S+\.yaml(?::\d+:\d+)?|(?:observer|source) \S+|sources\.\S+ .*|database[. ]?\S*|node|sinks\[\d+\]\S*(?: \(sink \S+\))?|http\S*): `)
	remedy  = regexp.MustCompile(`[;:,] (?:[a-z0-9 -]+ )?(?:use|add|write|run|remove|name|set|quote|create|correct|close|indent|start from|begin each|grant|there is|make|the primary key is|is it)\b`)
	closing = regexp.MustCompile(`^\S+: (?:\d+ mistakes?; the databases were not asked|no mistakes; the databases were not asked|\d+ observers? (?:is|are) ready|\d+ of \d+ observers? (?:is|are) not ready|no observer is enabled)(?:; .*)?$`)
)

// judged checks what validate says of a configuration: a closing line, and for what is
// wrong where, and what to write.
func judged(code int, stdout, stderr string) error {
	both := stdout + stderr
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	switch {
	case strings.Contains(both, "panic") || strings.Contains(both, "goroutine ") || strings.Contains(both, "runtime error"):
		return errors.New("it panics")
	case strings.Contains(both, secret):
		return errors.New("it shows a password")
	case !closing.MatchString(lines[len(lines)-1]):
		return errors.New("it has no closing line")
	case code != exitOK && code != exitConfiguration && code != exitUnavailable && code != exitDenied:
		return fmt.Errorf("its exit code is %d", code)
	}
	mistakes := 0
	for line := range strings.Lines(stderr) {
		line = strings.TrimSuffix(line, "\n")
		text, warning := strings.CutPrefix(line, "warning: ")
		if !warning {
			mistakes++
		}
		switch {
		case !placed.MatchString(text):
			return fmt.Errorf("it does not say where: %q", line)
		case code == exitConfiguration && !warning && !remedy.MatchString(text):
			return fmt.Errorf("it does not say what to write: %q", line)
		}
	}
	if (mistakes == 0) != (code == exitOK) {
		return fmt.Errorf("it names %d mistakes and ends with %d", mistakes, code)
	}
	return nil
}

// validated runs validate on a text.
func validated(t *testing.T, file, text string, environ []string, args ...string) (code int, err error) {
	t.Helper()
	must(t, os.WriteFile(file, []byte(text), 0o600))
	var stdout, stderr bytes.Buffer
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panics: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			err = fmt.Errorf("%w (exit code %d)\n%s%s", err, code, stdout.String(), stderr.String())
		}
	}()
	args = append([]string{"validate", "--config", file}, args...)
	code = run(t.Context(), args, environ, nil, &stdout, &stderr)
	return code, judged(code, stdout.String(), stderr.String())
}

// TestMutatedConfigurations: validate answers each mistake in the shipped configurations
// with a place and a remedy, and never with a panic or with silence.
func TestMutatedConfigurations(t *testing.T) {
	t.Parallel()
	environ := []string{"DATABASE_PASSWORD=x", "WAREHOUSE_PASSWORD=x", "CREDENTIALS_DIRECTORY=/"}
	for _, shipped := range []string{
		"../../config.yaml", "testdata/config.yaml", "../../deploy/compose/config.yaml", "../../deploy/compose/oracle/config.yaml", "../../deploy/packages/config.yaml",
	} {
		t.Run(filepath.Base(filepath.Dir(shipped)), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(shipped)
			must(t, err)
			random := rand.New(rand.NewPCG(simtest.Seed(), 1))
			file, codes := filepath.Join(t.TempDir(), "config.yaml"), make(map[int]int)
			all := mutants(t, string(text))
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			chosen := all[:min(len(all), simtest.Checks())]
			for _, m := range append(chosen, mutant{"as it is", string(text)}) {
				code, err := validated(t, file, m.text, environ, "--offline")
				if err != nil {
					t.Errorf("%s: %v", m.what, err)
				}
				codes[code]++
			}
			if codes[exitConfiguration] < len(chosen)/2 || codes[exitOK] == 0 {
				t.Errorf("exit codes are %v", codes)
			}
		})
	}
}

// TestMutatedConfigurationsAndDatabases does so where the databases are asked: what they
// say comes with the name of an observer or of a source.
func TestMutatedConfigurationsAndDatabases(t *testing.T) {
	t.Parallel()
	owner, folder := pgtest.New(t), t.TempDir()
	must(t, pgtest.Execute(t.Context(), owner,
		"CREATE TABLE orders (order_id INT PRIMARY KEY, status TEXT NOT NULL, updated_at TIMESTAMPTZ NOT NULL DEFAULT now())",
		"CREATE INDEX orders_by_time ON orders (updated_at, order_id)",
		"CREATE TABLE wages (id INT PRIMARY KEY)",
		"INSERT INTO orders VALUES (1, 'new', '2026-01-01'), (2, 'packed', '2026-01-02')"))
	reader := pgtest.NewRole(t, owner, "SELECT ON orders")
	depot := opened(t, "sqlite", "file:"+folder+"/depot.db")
	for _, statement := range []string{
		"PRAGMA user_version = 1", "CREATE TABLE stock (depot TEXT NOT NULL, sku INT NOT NULL, quantity INT, updated_at TIMESTAMP, PRIMARY KEY (depot, sku))",
		"INSERT INTO stock VALUES ('A', 11, 39, '2026-01-01 10:00:00'), ('B', 11, 17, '2026-01-01 10:00:01')",
	} {
		_, err := depot.Exec(statement)
		must(t, err)
	}
	text := fmt.Sprintf(`sources:
  shop: {url: %q, timezone: UTC}
  depot: {url: %q}
observers:
  - {id: shop-orders, type: order, source: shop, table: public.orders, key: order_id, timestamp: updated_at, columns: [status]}
  - {id: shop-changes, type: wes, source: shop, query: "SELECT order_id, status, updated_at FROM orders", key: order_id, timestamp: updated_at, overlap: 5s}
  - {id: depot-stock, type: inventory, source: depot, table: stock, key: [depot, sku], redact: {quantity: mask}}
`, reader, "sqlite:"+folder+"/depot.db")
	shared := fmt.Sprintf("database: {url: %q}\nsinks: [{id: screen, type: stdout}]\nhttp: {listen: \"\"}\n", "sqlite:"+folder+"/observerd.db")
	all := make(map[string]mutant)
	for _, m := range mutants(t, text) {
		all[m.text] = m
	}
	for _, query := range []string{"SELECT", "SELEC order_id FROM orders", "SELECT * FROM ordrs", "SELECT ordr_id FROM orders", "SELECT 1/0 AS order_id, now() AS updated_at", "SELECT * FROM wages", "DELETE FROM orders", "SELECT 'a;b'; SELECT 2", "SELECT order_id, order_id, updated_at FROM orders", "SELECT $1", "SELECT order_id, updated_at FROM orders --"} {
		changed := strings.Replace(text, "SELECT order_id, status, updated_at FROM orders", query, 1)
		all[changed] = mutant{"query " + query, changed}
	}
	for _, table := range []string{"wages", "pg_class", "information_schema.tables", `ord"ers`, "orders; DROP TABLE orders"} {
		changed := strings.Replace(text, "public.orders", fmt.Sprintf("%q", table), 1)
		all[changed] = mutant{"table " + table, changed}
	}
	codes, file, asked := make(map[int]int), filepath.Join(folder, "config.yaml"), 0
	keys, random := slices.Sorted(maps.Keys(all)), rand.New(rand.NewPCG(simtest.Seed(), 2))
	random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, key := range keys {
		m := all[key]
		if asked == simtest.Checks() {
			break
		}
		if code, _ := validated(t, file, shared+m.text, nil, "--offline"); code != exitOK {
			continue // The other test has many of these.
		}
		code, err := validated(t, file, shared+m.text, nil, "--timeout", "20s")
		if err != nil {
			t.Errorf("%s: %v", m.what, err)
		}
		codes[code]++
		asked++
	}
	if codes[exitConfiguration] < asked/4 || codes[exitUnavailable] == 0 || codes[exitOK] < asked/10 {
		t.Errorf("exit codes are %v", codes)
	}
}
