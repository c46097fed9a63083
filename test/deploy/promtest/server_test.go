//go:build nightly

package promtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/observerd/observerd/test/deploy/promtest"
	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/servertest"
)

// prometheus is a real Prometheus with our rules.
type prometheus struct {
	process *daemon.Process
	address string
}

// prometheusYAML is its configuration. One job is one cluster.
const prometheusYAML = `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [recording.yaml, alerts.yaml]
scrape_configs:
  - job_name: observerd
    static_configs: [{targets: [%q, %q]}]
`

// startPrometheus starts the server of the package on a free port, with the
// rules that ship and no other change to them than the scale.
func startPrometheus(t *testing.T, scale promtest.Scale, targets ...string) *prometheus {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"recording.yaml", "alerts.yaml"} {
		writeRules(t, scale, filepath.Join(root, "deploy", "prometheus", name), filepath.Join(folder, name))
	}
	text := fmt.Appendf(nil, prometheusYAML, targets[0], targets[1])
	if err := os.WriteFile(filepath.Join(folder, "prometheus.yml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &prometheus{}
	err := servertest.StartOnFreePort(t.Context(), func(port int) error {
		p.address = "127.0.0.1:" + strconv.Itoa(port)
		return p.start(t, folder, scale)
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *prometheus) start(t *testing.T, folder string, scale promtest.Scale) error {
	t.Helper()
	binary, err := promtest.Prometheus(t.Context())
	if err != nil {
		return err
	}
	// What is not scraped any more is looked back to for as long as the scaled
	// rules think that five minutes are.
	lookback := time.Duration(float64(5*time.Minute) * scale.Factor).Round(time.Millisecond)
	p.process, err = daemon.Start(context.WithoutCancel(t.Context()), daemon.Options{
		Binary: binary, Name: "prometheus", Folder: folder,
		Args: []string{
			"--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address=" + p.address,
			"--query.lookback-delta=" + lookback.String(),
		},
	})
	if err != nil {
		return err
	}
	t.Cleanup(p.process.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		if err = p.ask(ctx, "/-/ready", nil, nil); err == nil {
			return nil
		}
		select {
		case <-p.process.Exited():
			return fmt.Errorf("prometheus has ended:\n%s", p.process.Log.Tail(4000))
		case <-ctx.Done():
			return fmt.Errorf("prometheus is not ready: %w", err)
		case <-time.After(lookEvery):
		}
	}
}

func writeRules(t *testing.T, scale promtest.Scale, from, to string) {
	t.Helper()
	file, err := promtest.ReadRules(from)
	if err != nil {
		t.Fatal(err)
	}
	if file, err = scale.Rules(file); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// ask asks the HTTP API, and reads the data of its answer unless they are nil.
func (p *prometheus) ask(ctx context.Context, path string, values url.Values, data any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+path+"?"+values.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if data == nil {
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	}
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %w", response.Status, err)
	}
	if answer.Status != "success" {
		return errors.New(answer.Error)
	}
	return nil
}

// alert is one that is pending or fires.
type alert struct {
	Labels map[string]string
	State  string
}

// alerts are those that are pending or firing now. One that fires for one
// series and is pending for another fires.
func (p *prometheus) alerts(ctx context.Context) (map[string]alert, error) {
	var data struct{ Alerts []alert }
	if err := p.ask(ctx, "/api/v1/alerts", nil, &data); err != nil {
		return nil, fmt.Errorf("ask for the alerts: %w", err)
	}
	all := make(map[string]alert)
	for _, a := range data.Alerts {
		name := a.Labels["alertname"]
		if all[name].State != "firing" {
			all[name] = a
		}
	}
	return all, nil
}

// failures are rules that Prometheus could not evaluate, such as a match of many
// to many, which no parser finds.
func (p *prometheus) failures(ctx context.Context) error {
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := p.ask(ctx, "/api/v1/rules", nil, &data); err != nil {
		return fmt.Errorf("ask for the rules: %w", err)
	}
	var errs []error
	rules := 0
	for _, group := range data.Groups {
		for _, rule := range group.Rules {
			if rules++; rule.Health == "err" {
				errs = append(errs, fmt.Errorf("rule %s: %s", rule.Name, rule.LastError))
			}
		}
	}
	if rules == 0 {
		errs = append(errs, errors.New("prometheus has no rules"))
	}
	return errors.Join(errs...)
}

// series is one of an answer: the values of a range, or the one of a moment.
type series struct {
	Metric map[string]string
	Value  []any
	Values [][]any
}

// query asks as a panel of Grafana does: for now, or for the last minutes.
func (p *prometheus) query(ctx context.Context, e promtest.DashboardExpr, last time.Duration) ([]series, error) {
	var data struct{ Result []series }
	values, path := url.Values{"query": {e.Text}}, "/api/v1/query"
	if !e.Instant {
		now := time.Now()
		path = "/api/v1/query_range"
		values.Set("start", now.Add(-last).Format(time.RFC3339Nano))
		values.Set("end", now.Format(time.RFC3339Nano))
		values.Set("step", "5")
	}
	if err := p.ask(ctx, path, values, &data); err != nil {
		return nil, fmt.Errorf("%s: %w\nin %s", e.Where, err, e.Text)
	}
	return data.Result, nil
}

// shows reports whether a series has a value that can be drawn.
func (s series) shows() bool {
	values := s.Values
	if s.Value != nil {
		values = append(values, s.Value)
	}
	for _, v := range values {
		text, ok := v[1].(string)
		if number, err := strconv.ParseFloat(text, 64); ok && err == nil && !math.IsNaN(number) {
			return true
		}
	}
	return false
}
