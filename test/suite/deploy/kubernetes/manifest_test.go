package kubernetes_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

var (
	root     = filepath.Join("..", "..", "..", "..")
	manifest = filepath.Join(root, "deploy", "kubernetes", "observerd.yaml")
)

// object is what these tests look at.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Rules    []struct {
		APIGroups, Resources, Verbs []string
	}
	RoleRef  struct{ Name string } `yaml:"roleRef"`
	Subjects []struct{ Kind, Name string }
	Spec     struct {
		Template struct {
			Spec struct {
				ServiceAccountName string `yaml:"serviceAccountName"`
				Containers         []struct {
					Env []struct{ Name string }
				}
			}
		}
	}
}

func objects(t *testing.T) map[string]object {
	t.Helper()
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]object)
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var o object
		switch err := decoder.Decode(&o); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all[o.Kind] = o
	}
}

// TestConfiguration loads what the nodes mount, with the variables that they have.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	all := objects(t)
	pod := all["Deployment"].Spec.Template.Spec
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(all["ConfigMap"].Data["config.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	var environ []string
	for _, v := range pod.Containers[0].Env {
		environ = append(environ, v.Name+"=x")
	}
	cfg, warnings, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}, Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range warnings {
		if w.Key != "http.insecure" {
			t.Error(w)
		}
	}
	if cfg.HTTP.Listen != "0.0.0.0:8080" || len(cfg.Locks.Providers) != 1 {
		t.Errorf("it listens on %s, with %d providers of locks", cfg.HTTP.Listen, len(cfg.Locks.Providers))
	}
}

// TestRights compares the Role with that of the documentation, and with who has it.
func TestRights(t *testing.T) {
	t.Parallel()
	all := objects(t)
	account := all["ServiceAccount"].Metadata.Name
	if bound := all["RoleBinding"]; bound.RoleRef.Name != all["Role"].Metadata.Name || len(bound.Subjects) != 1 || bound.Subjects[0].Name != account || all["Deployment"].Spec.Template.Spec.ServiceAccountName != account {
		t.Error("the pods do not have the Role")
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "locks", "kubernetes.md"))
	if err != nil {
		t.Fatal(err)
	}
	rules := all["Role"].Rules
	if len(rules) != 1 || !slices.Equal(rules[0].Resources, []string{"leases"}) || !strings.Contains(string(page), "verbs: ["+strings.Join(rules[0].Verbs, ", ")+"]") {
		t.Errorf("the rules are %+v, others than those of docs/locks/kubernetes.md", rules)
	}
}
