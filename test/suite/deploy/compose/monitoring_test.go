package compose_test

import (
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"

	"github.com/observerd/observerd/test/suite/deploy/promtest"
)

// decoded reads a file that a service mounts.
func decoded(t *testing.T, s types.ServiceConfig, target string, into any) {
	t.Helper()
	text, err := os.ReadFile(mounted(t, s, target))
	must(t, err)
	must(t, yaml.Unmarshal(text, into))
}

// scrape is Prometheus' configuration, as far as it is compared.
type scrape struct {
	RuleFiles     []string `yaml:"rule_files"`
	ScrapeConfigs []struct {
		JobName       string `yaml:"job_name"`
		StaticConfigs []struct {
			Targets []string `yaml:"targets"`
		} `yaml:"static_configs"`
		DNS []struct {
			Names []string `yaml:"names"`
			Port  int      `yaml:"port"`
		} `yaml:"dns_sd_configs"`
	} `yaml:"scrape_configs"`
}

// TestPrometheusWatchesTheNodes holds the targets against the services: the nodes
// of one cluster are one job, and no node is forgotten.
func TestPrometheusWatchesTheNodes(t *testing.T) {
	t.Parallel()
	project := load(t, everything)
	var config scrape
	decoded(t, project.Services["prometheus"], "/etc/prometheus/prometheus.yml", &config)
	got := make(map[string][]string)
	for _, job := range config.ScrapeConfigs {
		for _, group := range job.StaticConfigs {
			got[job.JobName] = append(got[job.JobName], group.Targets...)
		}
		for _, group := range job.DNS {
			for _, name := range group.Names {
				got[job.JobName] = append(got[job.JobName], net.JoinHostPort(name, strconv.Itoa(group.Port)))
			}
		}
	}
	want := map[string][]string{
		"observerd":        {"node-a:8080", "node-b:8080", "node-c:8080"},
		"observerd-oracle": {"node-oracle:8080"},
		"observerd-kafka":  {"node-kafka:8080"},
		"prometheus":       {"127.0.0.1:9090"},
	}
	watched := 0
	for job, targets := range want {
		if !slices.Equal(got[job], targets) {
			t.Errorf("job %s has the targets %q, want %q", job, got[job], targets)
		}
		if !strings.HasPrefix(job, ours) {
			continue
		}
		for _, target := range targets {
			name, _, _ := strings.Cut(target, ":")
			watched++
			if s := project.Services[name]; s.Hostname != name || s.Build == nil {
				t.Errorf("%s is not the host of a node", name)
			}
		}
	}
	nodes := 0
	for name, s := range project.Services {
		if s.Build != nil && name != once {
			nodes++
		}
	}
	if watched != nodes || len(got) != len(want) {
		t.Errorf("%d of %d nodes are watched, by %d jobs", watched, nodes, len(got))
	}
	if len(config.RuleFiles) == 0 {
		t.Error("no rules are loaded")
	}
}

// TestPrometheusTakesItsConfiguration lays the files as the service mounts them,
// and has Prometheus' own checker look at them.
func TestPrometheusTakesItsConfiguration(t *testing.T) {
	t.Parallel()
	service := load(t, []string{"monitoring"}).Services["prometheus"]
	folder := t.TempDir()
	must(t, os.CopyFS(filepath.Join(folder, "rules"), os.DirFS(mounted(t, service, "/etc/prometheus/rules"))))
	text, err := os.ReadFile(mounted(t, service, "/etc/prometheus/prometheus.yml"))
	must(t, err)
	path := filepath.Join(folder, "prometheus.yml")
	must(t, os.WriteFile(path, text, 0o600))
	promtool, err := promtest.Promtool(t.Context())
	must(t, err)
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "config", path).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// TestGrafanaIsProvisioned follows what Grafana is told to where that leads.
func TestGrafanaIsProvisioned(t *testing.T) {
	t.Parallel()
	project := load(t, []string{"monitoring"})
	grafana := project.Services["grafana"]
	var sources struct {
		Datasources []struct{ UID, Type, URL string }
	}
	decoded(t, grafana, "/etc/grafana/provisioning/datasources/observerd.yaml", &sources)
	if len(sources.Datasources) != 1 || sources.Datasources[0].UID != "prometheus" || sources.Datasources[0].Type != "prometheus" {
		t.Fatalf("data sources %+v", sources.Datasources)
	}
	u, err := url.Parse(sources.Datasources[0].URL)
	must(t, err)
	if s, there := project.Services[u.Hostname()]; !there || len(s.Ports) != 1 || u.Port() != strconv.Itoa(int(s.Ports[0].Target)) {
		t.Errorf("no service answers at %s", u)
	}
	var dashboards struct {
		Providers []struct{ Options struct{ Path string } }
	}
	decoded(t, grafana, "/etc/grafana/provisioning/dashboards/observerd.yaml", &dashboards)
	if len(dashboards.Providers) != 1 {
		t.Fatalf("providers %+v", dashboards.Providers)
	}
	if folder := mounted(t, grafana, dashboards.Providers[0].Options.Path); folder != filepath.Join(absolute(t, root), "deploy", "grafana") {
		t.Errorf("Grafana takes its dashboards from %s", folder)
	}
}
