package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

const served = `
sources:
  warehouse: {url: "postgres://app@h/db"}
observers:
  - {id: orders, type: order, source: warehouse, table: orders, key: order_id, timestamp: updated_at}
sinks:
  - {id: lines, type: file, path: "lines.jsonl"}
`

// Every key that names a file takes variables, and complains of them alike.
func TestFileNamesTakeVariables(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, key := range config.Keys(wiring.Kinds()) {
		if key.Unit != "file name" {
			continue
		}
		tried++
		text, variable := served, config.EnvName(strings.ReplaceAll(key.Name, "<name>", "warehouse"))
		environment, where := environ(variable+"=/a/${NOT_SET}/b"), variable
		if strings.Contains(key.Name, "[]") {
			text, environment = strings.Replace(served, "lines.jsonl", "/a/${NOT_SET}/b", 1), environ()
			where = "config.yaml:7:35"
		}
		if got, want := refuse(t, text, environment), where+": the variable NOT_SET is not set; set it in the environment, or use the name itself"; got != want {
			t.Errorf("%s: %s, want %s", key.Name, got, want)
		}
	}
	if tried < 5 {
		t.Errorf("only %d keys name a file", tried)
	}
}

// withCredentials makes the folder that systemd makes of LoadCredential=.
func withCredentials(t *testing.T, credentials map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range credentials {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	return "CREDENTIALS_DIRECTORY=" + folder
}

const credentialed = `
database: {url-file: "${CREDENTIALS_DIRECTORY}/database-url"}
sources:
  warehouse: {url: "postgres://app@h/db", password-file: "${CREDENTIALS_DIRECTORY}/warehouse"}
observers:
  - {id: orders, type: order, source: warehouse, table: orders, key: order_id, timestamp: updated_at}
sinks:
  - {id: lines, type: file, path: "${STATE_DIRECTORY}/$${lines}.jsonl"}
`

func TestCredentialsOfSystemd(t *testing.T) {
	t.Parallel()
	both := map[string]string{"database-url": "postgres://observerd:" + canary + "@db/observerd\n", "warehouse": canary + "\n"}
	cfg := load(t, credentialed, environ(withCredentials(t, both), "STATE_DIRECTORY=/var/lib/observerd"))
	if got, want := cfg.Database.URL.Reveal(), "postgres://observerd:"+canary+"@db/observerd"; got != want {
		t.Errorf("database.url %s, want %s", got, want)
	}
	if got, want := cfg.Sources["warehouse"].URL.Reveal(), "postgres://app:"+canary+"@h/db"; got != want {
		t.Errorf("the source's url %s, want %s", got, want)
	}
	if got, want := cfg.Sinks[0].Written()["path"], "/var/lib/observerd/${lines}.jsonl"; got != want {
		t.Errorf("path %s, want %s", got, want)
	}
	if text := fmt.Sprintf("%+v", cfg); strings.Contains(text, canary) || !strings.Contains(text, "${CREDENTIALS_DIRECTORY}/warehouse") {
		t.Errorf("printed\n%s", text)
	}
	// Two units on one host have their credentials in two folders.
	other := load(t, credentialed, environ(withCredentials(t, both), "STATE_DIRECTORY=/var/lib/observerd"))
	if cfg.Hash() != other.Hash() {
		t.Error("the hash tells where the credentials are")
	}
}

func TestCredentialsThatAreMissing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ environment, want string }{
		"no credentials": {"HOME=/", `config.yaml:2:22: the variable CREDENTIALS_DIRECTORY is not set; set it in the environment, or use the name itself
config.yaml:4:58: the variable CREDENTIALS_DIRECTORY is not set; set it in the environment, or use the name itself`},
		"one of them":  {withCredentials(t, map[string]string{"warehouse": canary}), `config.yaml:2:22: database.url-file: the file does not exist; create it, or name the right file`},
		"an empty one": {withCredentials(t, map[string]string{"warehouse": "\n", "database-url": "sqlite:a.db"}), `config.yaml:4:58: the file is empty; write the password into it`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := refuse(t, credentialed, environ(test.environment, "STATE_DIRECTORY=/s")); got != test.want {
				t.Errorf("reported\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// A file that is not needed, because a later place names the URL, is not
// looked for: so a person can run a command outside the unit.
func TestCredentialThatIsNotUsed(t *testing.T) {
	t.Parallel()
	load(t, strings.Replace(minimal, "\nsources:", "\ndatabase: {url-file: \"${CREDENTIALS_DIRECTORY}/database-url\"}\nsources:", 1),
		environ("OBSERVERD_DATABASE_URL=sqlite:a.db"))
}
