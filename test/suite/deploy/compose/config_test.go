package compose_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

// configPath is where the image looks for its configuration.
const configPath = "/etc/observerd/config.yaml"

// loaded returns the configuration that a service mounts, in its environment.
func loaded(t *testing.T, s types.ServiceConfig) *config.Config {
	t.Helper()
	cfg, warnings, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{mounted(t, s, configPath)}, Environ: environment(t, s)})
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	for _, w := range warnings {
		if w.Key != "http.insecure" {
			t.Errorf("%s: %s", s.Name, w)
		}
	}
	return cfg
}

// TestConfigurationsLoad loads what each node mounts, and again without each of
// the variables that the service sets: the one that is missing is named.
func TestConfigurationsLoad(t *testing.T) {
	t.Parallel()
	for name, s := range load(t, everything).Services {
		if s.Build == nil {
			continue
		}
		if listen := loaded(t, s).HTTP.Listen; listen != "0.0.0.0:8080" {
			t.Errorf("%s listens on %s; the port that is published is 8080", name, listen)
		}
		environ := environment(t, s)
		for i, variable := range environ {
			variable, _, _ = strings.Cut(variable, "=")
			if !strings.HasSuffix(variable, "_PASSWORD") {
				continue
			}
			without := append(append([]string{}, environ[:i]...), environ[i+1:]...)
			_, _, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{mounted(t, s, configPath)}, Environ: without})
			if err == nil || !strings.Contains(err.Error(), variable) {
				t.Errorf("%s is not missed: %s needs no such variable, or does not say so: %v", variable, name, err)
			}
		}
	}
}

// TestDocumentedRun holds `docker run` of the documentation to what the image and a node need: the
// port that is published is one on which the node listens, outside of its own loopback.
func TestDocumentedRun(t *testing.T) {
	t.Parallel()
	_, command, _ := strings.Cut(read(t, "docs", "installation.md"), "\n$ docker run ")
	command, _, _ = strings.Cut(command, "\n```")
	var environ, published, mounts []string
	words := strings.Fields(command)
	for i, word := range words[1:] {
		switch words[i] {
		case "-e":
			environ = append(environ, word)
		case "-p":
			published = append(published, word)
		case "-v":
			mounts = append(mounts, word)
		}
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	must(t, os.WriteFile(file, fmt.Appendf(nil, sqliteNode, 8080), 0o600))
	cfg, _, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{file}, Environ: environ})
	must(t, err)
	if want := "127.0.0.1:8080:8080"; cfg.HTTP.Listen != "0.0.0.0:8080" || len(published) != 1 || published[0] != want {
		t.Errorf("%q is published, want %s; the node listens on %s", published, want, cfg.HTTP.Listen)
	}
	if len(mounts) != 2 || !strings.HasSuffix(mounts[0], ":"+configPath+":ro") || !strings.HasSuffix(mounts[1], ":"+one(t, "WORKDIR").rest) {
		t.Errorf("mounted are %q", mounts)
	}
}

// TestPasswordsAgree sets every password to one that is told from the others, and
// looks who is given it.
func TestPasswordsAgree(t *testing.T) {
	t.Parallel()
	project := load(t, everything,
		"POSTGRES_PASSWORD=p1", "DATABASE_PASSWORD=p2", "WAREHOUSE_PASSWORD=p3", "SHOP_PASSWORD=p4", "ORACLE_PASSWORD=p5")
	for service, want := range map[string]map[string]string{
		"postgres":       {"POSTGRES_PASSWORD": "p1", "DATABASE_PASSWORD": "p2", "WAREHOUSE_PASSWORD": "p3", "SHOP_PASSWORD": "p4"},
		"node-c":         {"DATABASE_PASSWORD": "p2", "WAREHOUSE_PASSWORD": "p3"},
		"traffic":        {"PGPASSWORD": "p4"},
		"oracle":         {"ORACLE_PASSWORD": "p5", "WAREHOUSE_PASSWORD": "p3", "APP_USER_PASSWORD": "p4"},
		"node-oracle":    {"WAREHOUSE_PASSWORD": "p3"},
		"node-kafka":     {"WAREHOUSE_PASSWORD": "p3"},
		"kafka":          {},
		"oracle-traffic": {"SHOP_PASSWORD": "p4"},
		"prometheus":     {},
		"grafana":        {},
	} {
		got := make(map[string]string)
		for name, value := range project.Services[service].Environment {
			if strings.HasPrefix(*value, "p") && len(*value) == 2 {
				got[name] = *value
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s is given %v, want %v", service, got, want)
		}
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s: %s is %q, want %q", service, name, got[name], value)
			}
		}
	}
}
