package compose_test

import (
	"encoding/json"
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

	"github.com/observerd/observerd/test/deploy/promtest"
)

// strictly reads a file of a service into a value that has all its keys.
func strictly(t *testing.T, s types.ServiceConfig, target string, into any) {
	t.Helper()
	file, err := os.Open(mounted(t, s, target))
	must(t, err)
	defer file.Close()
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", target, err)
	}
}

// scrape is what we write of Prometheus' configuration.
type scrape struct {
	Global struct {
		ScrapeInterval     string `yaml:"scrape_interval"`
		EvaluationInterval string `yaml:"evaluation_interval"`
	} `yaml:"global"`
	RuleFiles     []string `yaml:"rule_files"`
	ScrapeConfigs []struct {
		JobName       string `yaml:"job_name"`
		StaticConfigs []struct {
			Targets []string `yaml:"targets"`
		} `yaml:"static_configs"`
		DNS []struct {
			Names []string `yaml:"names"`
			Type  string   `yaml:"type"`
			Port  int      `yaml:"port"`
		} `yaml:"dns_sd_configs"`
		Relabel []struct {
			TargetLabel string `yaml:"target_label"`
			Replacement string `yaml:"replacement"`
		} `yaml:"relabel_configs"`
	} `yaml:"scrape_configs"`
}

// TestPrometheusWatchesTheNodes holds the targets against the services: the nodes
// of one cluster are one job, and no node is forgotten.
func TestPrometheusWatchesTheNodes(t *testing.T) {
	t.Parallel()
	project := load(t, everything)
	var config scrape
	strictly(t, project.Services["prometheus"], "/etc/prometheus/prometheus.yml", &config)
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
		"prometheus":       {"127.0.0.1:9090"},
	}
	for job, targets := range want {
		if !slices.Equal(got[job], targets) {
			t.Errorf("job %s has the targets %q, want %q", job, got[job], targets)
		}
		if !strings.HasPrefix(job, ours) {
			continue
		}
		for _, target := range targets {
			name, _, _ := strings.Cut(target, ":")
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
	if n := len(got["observerd"]) + len(got["observerd-oracle"]); n != nodes || len(got) != len(want) {
		t.Errorf("%d of %d nodes are watched, by %d jobs", n, nodes, len(got))
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
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, UID, Type, Access, URL string
			IsDefault                    bool           `yaml:"isDefault"`
			Editable                     bool           `yaml:"editable"`
			JSONData                     map[string]any `yaml:"jsonData"`
		} `yaml:"datasources"`
	}
	strictly(t, grafana, "/etc/grafana/provisioning/datasources/observerd.yaml", &sources)
	if len(sources.Datasources) != 1 || sources.Datasources[0].UID != "prometheus" || sources.Datasources[0].Type != "prometheus" {
		t.Fatalf("data sources %+v", sources.Datasources)
	}
	u, err := url.Parse(sources.Datasources[0].URL)
	must(t, err)
	if s, there := project.Services[u.Hostname()]; !there || len(s.Ports) != 1 || u.Port() != strconv.Itoa(int(s.Ports[0].Target)) {
		t.Errorf("no service answers at %s", u)
	}
	var dashboards struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Folder, Type string
			DisableDeletion    bool                  `yaml:"disableDeletion"`
			AllowUIUpdates     bool                  `yaml:"allowUiUpdates"`
			Options            struct{ Path string } `yaml:"options"`
		} `yaml:"providers"`
	}
	strictly(t, grafana, "/etc/grafana/provisioning/dashboards/observerd.yaml", &dashboards)
	if len(dashboards.Providers) != 1 {
		t.Fatalf("providers %+v", dashboards.Providers)
	}
	checkDashboards(t, mounted(t, grafana, dashboards.Providers[0].Options.Path))
}

// checkDashboards sees whether Grafana would take the files: each is a dashboard
// with a uid of its own. What they show is tested elsewhere.
func checkDashboards(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	must(t, err)
	uids := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(filepath.Clean(file))
		must(t, err)
		var d struct{ UID, Title string }
		must(t, json.Unmarshal(text, &d))
		if d.UID == "" || d.Title == "" || uids[d.UID] != "" {
			t.Errorf("%s: title %q, uid %q, which is also that of %q", file, d.Title, d.UID, uids[d.UID])
		}
		uids[d.UID] = file
	}
	if len(files) == 0 {
		t.Error("there are no dashboards")
	}
}
