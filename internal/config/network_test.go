package config_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

// A password of any characters comes from a file, unencoded, and replaces the
// one of the URL.
func TestPasswordFile(t *testing.T) {
	t.Parallel()
	const password = "p@ss/w:rd %#?&+${x} ü\"'"
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := load(t, `
sources:
  ora: {url: "oracle://app:old@h1:1521/svc?server=h2:1521&wallet=/w", password-file: "`+file+`"}
  pg: {url: "postgres://app@h/db?password=old&sslmode=require", password-file: "`+file+`"}
  socket: {url: "postgres:///db?host=/run/pg&user=app", password-file: "`+file+`"}
  my: {url: "mysql://app@h/db"}
observers:
  - {id: orders, type: order, source: ora, table: orders, key: order_id, timestamp: updated_at}
sinks: [{id: screen, type: stdout}]
`, environ("OBSERVERD_SOURCES_MY_PASSWORD_FILE="+file))
	for name, want := range map[string]string{
		"ora": "oracle://app:xxxxx@h1:1521/svc?server=h2%3A1521&wallet=%2Fw", "pg": "postgres://app:xxxxx@h/db?sslmode=require",
		"socket": "postgres:///db?host=%2Frun%2Fpg&password=xxxxx&user=app", "my": "mysql://app:xxxxx@h/db",
	} {
		u := cfg.Sources[name].URL
		parsed, err := url.Parse(u.Reveal())
		if err != nil {
			t.Fatal("the URL for the driver cannot be read")
		}
		got, _ := parsed.User.Password()
		if name == "socket" {
			got = parsed.Query().Get("password")
		}
		if got != password {
			t.Errorf("the driver of %s is given %q, want %q", name, got, password)
		}
		if u.String() != want {
			t.Errorf("%s is shown as %s, want %s", name, u, want)
		}
	}
	if text := fmt.Sprintf("%+v", cfg); strings.Contains(text, "p@ss") {
		t.Errorf("the password is printed:\n%s", text)
	}
}

// TestFilesOfASourceThatCannotBeRead loads a configuration without files of its
// sources. They are warned of, and read when they are there.
func TestFilesOfASourceThatCannotBeRead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	text := `
sources:
  ora: {url: "oracle://app@h1:1521/svc", password-file: "` + folder + `/password"}
  pg: {url-file: "` + folder + `/url"}
  whole: {url: "postgres://app@h/db"}
observers:
  - {id: orders, type: order, source: ora, table: orders, key: order_id, timestamp: updated_at}
sinks: [{id: screen, type: stdout}]
`
	path := write(t, text)
	cfg, warnings, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		":3:57: sources.ora.password-file: the file does not exist; create it, or name the right file; until then the observers of this source fail",
		":4:18: sources.pg.url-file: the file does not exist; create it, or name the right file; until then the observers of this source fail",
	} {
		if len(warnings) != 2 || warnings[i].String() != path+want {
			t.Errorf("warned of %v, want %s", warnings, want)
		}
	}
	if !cfg.Sources["whole"].IsWhole() {
		t.Error("a source without files is not whole")
	}
	resolved := func(name, url, why string) {
		t.Helper()
		s, err := cfg.Sources[name].Resolve()
		switch {
		case cfg.Sources[name].IsWhole():
			t.Errorf("%s is whole", name)
		case why == "":
			if err != nil || !s.IsWhole() || s.URL.Reveal() != url {
				t.Errorf("%s is %s: %v", name, s.URL, err)
			}
		case err == nil || err.Error() != path+why:
			t.Errorf("%s: %v, want %s", name, err, why)
		}
	}
	unread := func(name string) bool {
		_, err := cfg.Sources[name].Resolve()
		return errors.Is(err, config.ErrUnread)
	}
	resolved("ora", "", ":3:57: sources.ora.password-file: the file does not exist; create it, or name the right file")
	resolved("pg", "", ":4:18: sources.pg.url-file: the file does not exist; create it, or name the right file")
	if !unread("ora") || !unread("pg") {
		t.Error("a file that is missing is taken for a mistake")
	}
	hash := cfg.Hash()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("password", "")
	put("url", "mongodb://u:"+canary+"@h/db")
	resolved("ora", "", ":3:57: the file is empty; write the password into it")
	resolved("pg", "", ":4:18: this version does not support mongodb yet; use sqlite:PATH, or postgres, oracle, mysql or mariadb://USER@HOST/DATABASE")
	if unread("ora") || unread("pg") {
		t.Error("a mistake is taken for a file that is missing")
	}
	put("password", "p@ss\n")
	put("url", "postgres://u:p@h/db\n")
	resolved("ora", "oracle://app:p%40ss@h1:1521/svc", "")
	resolved("pg", "postgres://u:p@h/db", "")
	if now := load(t, text); now.Hash() != hash {
		t.Error("the hash tells whether the files could be read")
	}
}

func TestStartAndReconcile(t *testing.T) {
	t.Parallel()
	set := func(keys string) config.Observer {
		return load(t, strings.Replace(minimal, "updated_at}", "updated_at, "+keys+"}", 1)).Observers[0]
	}
	if now, at := set("start: beginning").StartAt(); now || !at.IsZero() {
		t.Errorf("beginning: %v %v", now, at)
	}
	if now, _ := set("start: now").StartAt(); !now {
		t.Error("now is not now")
	}
	if now, at := set("start: 2026-01-31T12:00:00+01:00").StartAt(); now || !at.Equal(time.Date(2026, 1, 31, 11, 0, 0, 0, time.UTC)) {
		t.Errorf("a timestamp: %v %v", now, at)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	o := set(`reconcile-at: "02:30"`)
	for now, want := range map[string]string{
		"2026-06-10T00:29:59Z": "2026-06-09T00:30:00Z",
		"2026-06-10T00:30:00Z": "2026-06-10T00:30:00Z",
		"2026-01-10T12:00:00Z": "2026-01-10T01:30:00Z",
		// The clocks go forward at 02:00, so there is no half past two.
		"2026-03-29T12:00:00Z": "2026-03-29T01:30:00Z",
	} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		if due, ok := o.ReconcileDue(at, berlin); !ok || due.UTC().Format(time.RFC3339) != want {
			t.Errorf("at %s the last was due %v, want %s", now, due.UTC(), want)
		}
	}
	if _, ok := set("start: now").ReconcileDue(time.Now(), berlin); ok {
		t.Error("an observer without reconcile-at has a reconcile")
	}
}

// A raw @ in a password is where two readers of one URL part: what follows would be a
// host to one of them, to be looked up and told in errors.
func TestRawAtInAPasswordIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"postgres://app:hunter2@unter3@h/db", "postgresql://app:hunter2@unter3@h1,h2:5433/db?sslmode=require", "postgres://app:hunter2@unter3@h",
		"postgres://@app:hunter2@h/db",
	} {
		if _, err := wiring.Kinds().Servers.ParseURL(text); err == nil || !strings.Contains(err.Error(), "%40 for @") || strings.Contains(err.Error(), "unter") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"postgres://app:hunter2%40unter3@h/db", "postgres://app@h/db?application_name=a@b", "mysql://app:p@ss@h/db"} {
		if _, err := wiring.Kinds().Servers.ParseURL(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	got := refuse(t, `database: {url: "postgres://app:${DB_PASSWORD}@h/db"}`+"\n"+minimal, environ("DB_PASSWORD=hunter2@unter3"))
	if !strings.Contains(got, "%40 for @") || strings.Contains(got, "unter") {
		t.Errorf("reported\n%s", got)
	}
}
