package compose_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// load reads docker-compose.yml as docker compose does, with those profiles and
// with no variable set but these.
func load(t *testing.T, profiles []string, environ ...string) *types.Project {
	t.Helper()
	project, err := loadFile(t, filepath.Join(root, "docker-compose.yml"), profiles, environ...)
	must(t, err)
	return project
}

func loadFile(t *testing.T, path string, profiles []string, environ ...string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{path}, cli.WithEnv(environ), cli.WithProfiles(profiles), cli.WithResolvedPaths(true))
	must(t, err)
	return options.LoadProject(t.Context())
}

// everything are all profiles.
var everything = []string{"*"}

// environment returns what compose sets for a service.
func environment(t *testing.T, s types.ServiceConfig) []string {
	t.Helper()
	var environ []string
	for name, value := range s.Environment {
		if value == nil {
			t.Errorf("%s: the variable %s has no value; write one, or a default", s.Name, name)
			continue
		}
		environ = append(environ, name+"="+*value)
	}
	slices.Sort(environ)
	return environ
}

// mounted returns the file of the repository that a service sees at a path.
func mounted(t *testing.T, s types.ServiceConfig, target string) string {
	t.Helper()
	for _, v := range s.Volumes {
		if v.Type == types.VolumeTypeBind && v.Target == target {
			return v.Source
		}
	}
	t.Fatalf("%s mounts nothing at %s", s.Name, target)
	return ""
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	alone := []string{"migrate", "node-a", "node-b", "node-c", "postgres", "traffic"}
	for _, c := range []struct{ profiles, more []string }{
		{nil, nil},
		{[]string{"monitoring"}, []string{"grafana", "prometheus"}},
		{[]string{"oracle"}, []string{"node-oracle", "oracle", "oracle-traffic"}},
		{[]string{"monitoring", "oracle"}, []string{"grafana", "prometheus", "node-oracle", "oracle", "oracle-traffic"}},
	} {
		project := load(t, c.profiles)
		want := slices.Sorted(slices.Values(append(slices.Clone(alone), c.more...)))
		if got := slices.Sorted(maps.Keys(project.Services)); !slices.Equal(got, want) {
			t.Errorf("profiles %q: services %q, want %q", c.profiles, got, want)
		}
	}
}

// TestAMistakeIsNoticed shows that loading checks.
func TestAMistakeIsNoticed(t *testing.T) {
	t.Parallel()
	text := read(t, "docker-compose.yml")
	for _, change := range [][2]string{
		{"    cpus: 0.5\n", "    cpu: 0.5\n"},
		{"condition: service_healthy", "condition: service_wealthy"},
		{"postgres-data:/var", "progres-data:/var"},
		{"      postgres: {condition", "      progres: {condition"},
	} {
		wrong := strings.Replace(text, change[0], change[1], 1)
		if wrong == text {
			t.Fatalf("docker-compose.yml has no %q", change[0])
		}
		path := filepath.Join(t.TempDir(), "docker-compose.yml")
		must(t, os.WriteFile(path, []byte(wrong), 0o600))
		if _, err := loadFile(t, path, everything); err == nil {
			t.Errorf("%q was taken", change[1])
		}
	}
}
