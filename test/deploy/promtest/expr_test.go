package promtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const exposition = `
# TYPE polls_total counter
polls_total{type="order",outcome="ok"} 1
# TYPE acquired_total counter
acquired_total{type="order",node="a"} 1
# TYPE age_seconds gauge
age_seconds{type="order"} 1
# TYPE interval_seconds gauge
interval_seconds{type="order"} 30
# TYPE live_nodes gauge
live_nodes 2
# TYPE took_seconds histogram
took_seconds_bucket{type="order",le="+Inf"} 1
took_seconds_sum{type="order"} 1
took_seconds_count{type="order"} 1
`

func schema(t *testing.T) Schema {
	t.Helper()
	s, err := ReadSchema(strings.NewReader(exposition))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLabelsOfExpressions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`1 + 2`:                                          "none",
		`live_nodes`:                                     "instance, job",
		`-live_nodes{job="a"} * 2`:                       "instance, job",
		`2 * live_nodes`:                                 "instance, job",
		`rate(polls_total[5m])`:                          "instance, job, outcome, type",
		`sum(polls_total)`:                               "none",
		`sum by (job, type) (polls_total)`:               "job, type",
		`sum without (outcome) (polls_total)`:            "instance, job, type",
		`topk by (job) (3, polls_total)`:                 "instance, job, outcome, type",
		`polls_total unless on (type) (age_seconds > 3)`: "instance, job, outcome, type",
		`sum by (job) (live_nodes) or sum by (type) (age_seconds)`:                                      "job, type",
		`polls_total / on (type) group_left () sum by (type) (acquired_total)`:                          "instance, job, outcome, type",
		`sum by (job) (live_nodes) * on (job) group_right (type) sum by (job, node) (acquired_total)`:   "",
		`sum by (job) (live_nodes) * on (job) group_right () sum by (job, node) (acquired_total)`:       "job, node",
		`age_seconds / interval_seconds`:                                                                "instance, job, type",
		`age_seconds > on (type, instance) interval_seconds`:                                            "instance, type",
		`min by (job, type) (age_seconds) > clamp_min(3 * max by (job, type) (interval_seconds), 300)`:  "job, type",
		`histogram_quantile(0.95, sum by (le, type) (rate(took_seconds_bucket[5m])))`:                   "type",
		`rate(took_seconds_sum[5m]) / rate(took_seconds_count[5m])`:                                     "instance, job, type",
		`max_over_time(live_nodes[1h:1m] offset 5m)`:                                                    "instance, job",
		`label_replace(live_nodes, "node", "$1", "instance", "(.+):.+")`:                                "instance, job, node",
		`count by (job) (sum by (job, node) (increase(acquired_total[1h])) > bool 0)`:                   "job",
		`sum by (job, type) (acquired_total) / ignoring (node) sum by (job, type) (polls_total)`:        "job, type",
		`sum by (type) (rate(polls_total[1m])) / ignoring (job) sum by (type) (rate(polls_total[10m]))`: "type",
	} {
		got, err := Expr{Where: "test", Text: text}.Check(schema(t))
		switch {
		case want == "" && err == nil:
			t.Errorf("%s: labels %s, want an error", text, got)
		case want != "" && (err != nil || got.String() != want):
			t.Errorf("%s: labels %s, want %s: %v", text, got, want, err)
		}
	}
}

func TestMistakesInExpressions(t *testing.T) {
	t.Parallel()
	for text, complaint := range map[string]string{
		`sum(`:                                                    "parse error",
		`rate(live_nodes)`:                                        "expected type range vector",
		`dead_nodes`:                                              `there is no metric "dead_nodes"`,
		`live_nodes{type="order"}`:                                "live_nodes has no label type",
		`sum by (sink) (polls_total)`:                             "polls_total has no label sink",
		`sum without (sink) (polls_total)`:                        "polls_total has no label sink",
		`polls_total * on (node) acquired_total`:                  "polls_total has no label node",
		`acquired_total * on (node) polls_total`:                  "polls_total has no label node",
		`polls_total / age_seconds`:                               "nothing matches",
		`polls_total unless age_seconds`:                          "nothing matches",
		`age_seconds * on (type) group_left (node) polls_total`:   "polls_total has no label node",
		`age_seconds * on (type) group_right (node) polls_total`:  "age_seconds has no label node",
		`histogram_quantile(0.9, took_seconds_sum)`:               "took_seconds_sum has no label le",
		`took_seconds`:                                            "there is no metric",
		`absent(live_nodes)`:                                      "the labels of absent are not known here",
		`label_replace(live_nodes, "node", "$1", "sink", "(.+)")`: "live_nodes has no label sink",
	} {
		if _, err := (Expr{Where: "test", Text: text}).Check(schema(t)); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%s: told %v, want %q", text, err, complaint)
		}
	}
	shown := Expr{Where: "test", Text: "sum by (type) (polls_total)", Shown: []string{"type", "node"}}
	if _, err := shown.Check(schema(t)); err == nil || !strings.Contains(err.Error(), "no label node") {
		t.Errorf("a legend shows a label that is not there: %v", err)
	}
}

func TestRulesResolve(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	read := func(text string) (RuleFile, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadRules(path)
	}
	file, err := read(`
groups:
  - name: test
    rules:
      # Recorded out of another one, which comes later.
      - {record: "job:late:ratio", expr: "sum by (job) (job_type:late:ratio)"}
      - {record: "job_type:late:ratio", expr: "min by (job, type) (age_seconds) / max by (job, type) (interval_seconds)", labels: {of: test}}
      # Its own last value, kept while there is no other.
      - record: "type:age:seconds"
        expr: "min by (type) (label_replace(age_seconds, 'of', 'now', '', '') or label_replace(type:age:seconds + 1 unless on (type) polls_total, 'of', 'before', '', ''))"
      - {alert: Late, expr: "job_type:late:ratio{of='test'} > 3", for: 5m, annotations: {summary: "{{ $labels.type }} of {{ $labels.node }}"}}
`)
	if err != nil {
		t.Fatal(err)
	}
	s := schema(t)
	if err := s.Record(file); err != nil {
		t.Fatal(err)
	}
	if got := s["job_type:late:ratio"].String(); got != "job, of, type" {
		t.Errorf("labels of the rule: %s", got)
	}
	if got := s["type:age:seconds"].String(); got != "type" {
		t.Errorf("labels of the rule that keeps its value: %s", got)
	}
	if _, err := file.Rules()[3].Expr().Check(s); err == nil || !strings.Contains(err.Error(), "rules.yaml: Late: the result, as the legend or an annotation shows it, has no label node") {
		t.Errorf("an annotation shows a label that is not there: %v", err)
	}
	for complaint, text := range map[string]string{
		`there is no metric "job:later:ratio"`: `groups: [{name: a, rules: [{record: "job:late:ratio", expr: "job:later:ratio"}]}]`,
		`made of nothing but itself`:           `groups: [{name: a, rules: [{record: "a:b", expr: "a:b"}]}]`,
		"not found in type":                    `groups: [{name: a, rules: [{record: "a:b", exp: "up"}]}]`,
		"not a valid duration":                 `groups: [{name: a, rules: [{alert: A, expr: "up", for: soon}]}]`,
	} {
		file, err := read(text)
		if err == nil {
			err = schema(t).Record(file)
		}
		if err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%s: told %v, want %q", text, err, complaint)
		}
	}
}
