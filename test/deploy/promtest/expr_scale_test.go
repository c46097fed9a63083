package promtest

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
)

func TestScaleShortensTimeAlone(t *testing.T) {
	t.Parallel()
	s := Scale{Factor: 1.0 / 30, Least: 5 * time.Second}
	for text, want := range map[string]string{
		`rate(x_total[30m])`:                       `rate(x_total[1m])`,
		`rate(x_total[1m])`:                        `rate(x_total[5s])`,
		`x offset 1h`:                              `x offset 2m`,
		`min by (type) (poll_age_seconds) > 300`:   `min by (type) (poll_age_seconds) > 10`,
		`clamp_min(3 * interval_seconds, 180)`:     `clamp_min(3 * interval_seconds, 6)`,
		`age > bool 300 == 1`:                      `age > bool 10 == 1`,
		`histogram_quantile(0.95, took_bucket)`:    `histogram_quantile(0.95, took_bucket)`,
		`rows > 1.2 * rows offset 1h + 1000`:       `rows > 1.2 * rows offset 2m + 1000`,
		`lag / rate(delivered_total[30m]) > 86400`: `lag / rate(delivered_total[1m]) > 86400`,
	} {
		got, err := s.expr(Expr{Where: "test", Text: text})
		if err != nil || got != want {
			t.Errorf("%s became %s, want %s: %v", text, got, want, err)
		}
	}
	for text, complaint := range map[string]string{
		`up[`: "parse error", `age > 301`: "not listed as a time or a count", `max_over_time(x[1h:1m])`: "is not scaled here",
	} {
		if _, err := s.expr(Expr{Where: "test", Text: text}); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%s: told %v, want %q", text, err, complaint)
		}
	}
}

func TestScaleLeavesTheFileAlone(t *testing.T) {
	t.Parallel()
	minutes := func(n int) model.Duration { return model.Duration(time.Duration(n) * time.Minute) }
	file := RuleFile{Groups: []RuleGroup{{Interval: minutes(1), Rules: []Rule{{Alert: "A", Text: "rate(x[30m]) > 1", For: minutes(30), KeepFiringFor: minutes(5)}}}}}
	scaled, err := Scale{Factor: 0.1}.Rules(file)
	if err != nil {
		t.Fatal(err)
	}
	seconds := func(n int) model.Duration { return model.Duration(time.Duration(n) * time.Second) }
	g := scaled.Groups[0]
	if r := g.Rules[0]; g.Interval != seconds(6) || r.For != seconds(180) || r.KeepFiringFor != seconds(30) || r.Text != "rate(x[3m]) > 1" {
		t.Errorf("scaled: %+v", g)
	}
	if r := file.Groups[0].Rules[0]; r.For != minutes(30) || r.Text != "rate(x[30m]) > 1" {
		t.Errorf("the file itself has become %+v", r)
	}
}
