//go:build unix

package config_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

// of returns a configuration with these URLs.
func of(database, source string) string {
	return fmt.Sprintf(`
database: {url: %q}
sources:
  shop:
    url: %q
observers:
  - {id: orders, type: order, source: shop, table: orders, key: order_id, timestamp: updated_at}
sinks:
  - {id: screen, type: stdout}
`, database, source)
}

// mode gives the file of a configuration another mode.
func mode(t *testing.T, bits os.FileMode) func(*config.Options) {
	t.Helper()
	return func(o *config.Options) {
		if err := os.Chmod(o.Paths[0], bits); err != nil {
			t.Fatal(err)
		}
	}
}

func variables(o *config.Options) {
	o.Environ = []string{"PW=hunter2", "USER=app", "HOST=h", "PORT=5432", "SCHEME=postgres", "URL=postgres://u:hunter2@h/db", "EQUAL=app"}
}

func TestPasswordsInAFileThatOthersMayRead(t *testing.T) {
	t.Parallel()
	const database, source = "config.yaml:2:17: database.url holds a password", "config.yaml:5:10: sources.shop.url holds a password"
	for name, test := range map[string]struct {
		database, source string
		want             []string
	}{
		"none":                  {"sqlite:a.db", "postgres://app@h/db?sslmode=require", nil},
		"of the database":       {"postgres://app:hunter2@h/db", "sqlite:a.db", []string{database}},
		"of a source":           {"sqlite:a.db", "mysql://app:hunter2@h/db", []string{source}},
		"of both":               {"postgres://app:hunter2@h/db", "oracle://app:hunter2@h/db", []string{database, source}},
		"among the parameters":  {"postgres://h/db?user=app&password=hunter2", "sqlite:a.db", []string{database}},
		"of a key":              {"postgres://app@h/db?sslpassword=hunter2", "sqlite:a.db", []string{database}},
		"of a wallet":           {"sqlite:a.db", "oracle://app@h/db?Wallet_Password=hunter2", []string{source}},
		"beside a variable":     {"${SCHEME}://${USER}:hunter2@${HOST}:${PORT}/db", "sqlite:a.db", []string{database}},
		"partly a variable":     {"postgres://app:hunter2-${PW}@h/db", "sqlite:a.db", []string{database}},
		"a variable":            {"postgres://app:${PW}@h/db", "mysql://app:${PW}@h/db", nil},
		"a variable like a key": {"postgres://app:${EQUAL}@h/db?application_name=app", "sqlite:a.db", nil},
		"all in variables":      {"${SCHEME}://${USER}:${PW}@${HOST}:${PORT}/db?sslpassword=${PW}", "sqlite:a.db", nil},
		"the URL is a variable": {"${URL}", "${URL}", nil},
		"a default":             {"postgres://app:${NO_PW:-hunter2}@h/db", "${NO_URL:-mysql://app:hunter2@h/db}", []string{database, source}},
		"other options":         {"postgres://app@h/db?options=-c%20a%3Db&sslkey=/k.pem&passfile=/p&connect_timeout=3", "mysql://app@h/db?ssl-key=/k.pem", nil},
		"a name without one":    {"postgres://app:@h/db", "sqlite:a.db", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := of(test.database, test.source)
			for _, closed := range []os.FileMode{0o600, 0o640, 0o440, 0o660} {
				load(t, text, mode(t, closed), variables)
			}
			for _, open := range []os.FileMode{0o644, 0o444, 0o604} {
				if len(test.want) == 0 {
					load(t, text, mode(t, open), variables)
					continue
				}
				got := refuse(t, text, mode(t, open), variables)
				lines := strings.Split(got, "\n")
				if len(lines) != len(test.want) || strings.Contains(got, "hunter2") {
					t.Fatalf("reported\n%s\nwant %d", got, len(test.want))
				}
				for i, want := range test.want {
					if !strings.HasPrefix(lines[i], want) || !strings.Contains(lines[i], fmt.Sprintf("(mode %#o); run chmod 640 config.yaml, or use ${NAME}", open)) {
						t.Errorf("reported\n%s\nwant\n%s", lines[i], want)
					}
				}
			}
		})
	}
}

// The file holds the password even where the environment says otherwise.
func TestExposedPasswordThatHasNoEffect(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://app:hunter2@h/db", "postgres://app:hunter2%zz@h/db", "postgres://app:hun/ter2@h/db", "postgres://app:12#hunter2@h/db",
	} {
		got := refuse(t, of(url, "sqlite:a.db"), mode(t, 0o644), environ("OBSERVERD_DATABASE_URL=sqlite:b.db"))
		if !strings.HasPrefix(got, "config.yaml:2:17: database.url holds a password") || strings.Contains(got, "\n") {
			t.Errorf("%s: reported\n%s", url, got)
		}
	}
	// A password that the environment brings is not in the file.
	load(t, of("sqlite:a.db", "sqlite:a.db"), mode(t, 0o644), environ("OBSERVERD_DATABASE_URL=postgres://app:hunter2@h/db"))
}

// It hides no other mistake, of the same key neither.
func TestExposedPasswordBesideOtherMistakes(t *testing.T) {
	t.Parallel()
	text := of("mysql://app:hunter2@h/db", "sqlite:a.db") + "log: {level: loud}\n"
	got := refuse(t, text, mode(t, 0o644))
	if n := strings.Count(got, "\n") + 1; n != 3 || !strings.Contains(got, "2:17: mysql is read as a source only") || !strings.Contains(got, `"loud"`) {
		t.Errorf("reported %d\n%s", n, got)
	}
}

func TestModeOfALinkIsThatOfItsTarget(t *testing.T) {
	t.Parallel()
	target := write(t, of("postgres://app:hunter2@h/db", "sqlite:a.db"))
	link := filepath.Join(t.TempDir(), "link.yaml")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if _, _, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{link}}); err != nil {
		t.Errorf("the link itself has no mode that counts: %v", err)
	}
	if err := os.Chmod(target, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{link}}); err == nil || !strings.HasPrefix(err.Error(), link+":2:17: database.url holds a password") {
		t.Errorf("a target that everyone may read: %v", err)
	}
}

// What comes through a pipe has no mode.
func TestConfigurationFromAPipe(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.WriteString(w, of("postgres://app:hunter2@h/db", "sqlite:a.db")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	cfg, warnings, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{fmt.Sprintf("/dev/fd/%d", r.Fd())}})
	if err != nil || len(warnings) > 0 || cfg.Database.URL.Dialect() != config.Postgres {
		t.Errorf("%v, warnings %v", err, warnings)
	}
}

// A file with a secret that others may read is worth a warning, and no more:
// in a container its mode can often not be changed.
func TestSecretFilesThatOthersMayRead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	secret := func(name, text string, bits os.FileMode) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, bits); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const url, plain = "postgres://app:hunter2@h/db", "postgres://app@h/db"
	for name, test := range map[string]struct {
		variable string
		warned   bool
	}{
		"a URL for everyone":           {"OBSERVERD_DATABASE_URL_FILE=" + secret("1", url, 0o644), true},
		"a URL for a group":            {"OBSERVERD_DATABASE_URL_FILE=" + secret("2", url, 0o640), false},
		"a URL without a password":     {"OBSERVERD_DATABASE_URL_FILE=" + secret("3", plain, 0o644), false},
		"a password for everyone":      {"OBSERVERD_SOURCES_SHOP_PASSWORD_FILE=" + secret("4", "hunter2", 0o444), true},
		"a password for this user":     {"OBSERVERD_SOURCES_SHOP_PASSWORD_FILE=" + secret("5", "hunter2", 0o400), false},
		"a source's URL for everyone":  {"OBSERVERD_SOURCES_SHOP_URL_FILE=" + secret("6", url, 0o644), true},
		"a source's URL for this user": {"OBSERVERD_SOURCES_SHOP_URL_FILE=" + secret("7", url, 0o600), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, warnings, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{write(t, of("sqlite:a.db", plain))}, Environ: []string{test.variable}})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(warnings) == 1 && strings.Contains(warnings[0].String(), ": the file holds a secret, and every user of this host may read it (mode 0"); got != test.warned {
				t.Errorf("warnings %v", warnings)
			}
		})
	}
}

// The mode counts of the file that has the password.
func TestPasswordInOneOfSeveralFiles(t *testing.T) {
	t.Parallel()
	text := strings.Replace(of("sqlite:a.db", "postgres://app:hunter2@h/db"), "database: {url: \"sqlite:a.db\"}\n", "", 1)
	folder := folderOf(t, map[string]string{"a.yaml": "database: {url: \"postgres://app:hunter2@h/db\"}\n", "b.yaml": text})
	for open, want := range map[string]string{"a.yaml": "a.yaml:1:17: database.url", "b.yaml": "b.yaml:4:10: sources.shop.url"} {
		path := filepath.Join(folder, open)
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		_, got := from(folder, "a.yaml", "b.yaml")
		if !strings.HasPrefix(got, want+" holds a password") || strings.Count(got, "\n") != 1 || !strings.Contains(got, "run chmod 640 "+open+", or") {
			t.Errorf("reported\n%s\nwant %s", got, want)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, got := from(folder, "a.yaml", "b.yaml"); got != "" {
		t.Error(got)
	}
}
