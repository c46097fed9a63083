package compose_test

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// load reads docker-compose.yml as docker compose does, with those profiles and
// with no variable set but these.
func load(t *testing.T, profiles []string, environ ...string) *types.Project {
	t.Helper()
	path := filepath.Join(root, "docker-compose.yml")
	options, err := cli.NewProjectOptions([]string{path}, cli.WithEnv(environ), cli.WithProfiles(profiles), cli.WithResolvedPaths(true))
	must(t, err)
	project, err := options.LoadProject(t.Context())
	must(t, err)
	return project
}

// everything are all profiles.
var everything = []string{"*"}

// environment returns what compose sets for a service.
func environment(t *testing.T, s types.ServiceConfig) []string {
	t.Helper()
	var environ []string
	for name, value := range s.Environment {
		if value == nil {
			t.Errorf("%s: the variable %s has no value; set one, or a default", s.Name, name)
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
		{[]string{"kafka"}, []string{"kafka", "node-kafka"}},
		{[]string{"monitoring", "oracle"}, []string{"grafana", "prometheus", "node-oracle", "oracle", "oracle-traffic"}},
	} {
		project := load(t, c.profiles)
		want := slices.Sorted(slices.Values(append(slices.Clone(alone), c.more...)))
		if got := slices.Sorted(maps.Keys(project.Services)); !slices.Equal(got, want) {
			t.Errorf("profiles %q: services %q, want %q", c.profiles, got, want)
		}
	}
}
