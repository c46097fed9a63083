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
		`rate(x_total[30m])`:                        `rate(x_total[1m])`,
		`rate(x_total[1m])`:                         `rate(x_total[5s])`,
		`x offset 1h`:                               `x offset 2m`,
		`max_over_time(x[1h:1m])`:                   `max_over_time(x[2m:2s])`,
		`min by (type) (poll_age_seconds) > 300`:    `min by (type) (poll_age_seconds) > 10`,
		`300 < poll_age_seconds`:                    `10 < poll_age_seconds`,
		`poll_age_seconds > 5 * 60`:                 `poll_age_seconds > 0.16666666666666666 * 60`,
		`max_over_time(poll_age_seconds[5m]) > 60`:  `max_over_time(poll_age_seconds[10s]) > 2`,
		`time() - started_timestamp_seconds > 300`:  `time() - started_timestamp_seconds > 10`,
		`held_seconds > 300`:                        `held_seconds > 300`,
		`lock_held_seconds > on (type) (2 * ttl)`:   `lock_held_seconds > on (type) (2 * ttl)`,
		`clamp_min(3 * poll_interval_seconds, 300)`: `clamp_min(3 * poll_interval_seconds, 10)`,
		`up and of:poll_interval:seconds <= 150`:    `up and of:poll_interval:seconds <= 5`,
		`clamp_min(2 * of:poll_interval:seconds + clamp_min(of:poll_interval:seconds, 180), 300)`: `clamp_min(2 * of:poll_interval:seconds + clamp_min(of:poll_interval:seconds, 6), 10)`,
		`time() - of:last_success:timestamp_seconds > 300`:                                        `time() - of:last_success:timestamp_seconds > 10`,
		`of:duration_seconds:p95 > 300`:                                                           `of:duration_seconds:p95 > 300`,
		`poll_age_seconds / poll_interval_seconds > 3`:                                            `poll_age_seconds / poll_interval_seconds > 3`,
		`poll_age_seconds > bool 300 == 1`:                                                        `poll_age_seconds > bool 10 == 1`,
		`count(poll_age_seconds) > 2`:                                                             `count(poll_age_seconds) > 2`,
		`histogram_quantile(0.95, took_bucket) > 0.02`:                                            `histogram_quantile(0.95, took_bucket) > 0.02`,
		`a_total > 300 and on (type) poll_age_seconds > 3`:                                        `a_total > 300 and on (type) poll_age_seconds > 0.1`,
	} {
		got, err := s.expr(Expr{Where: "test", Text: text})
		if err != nil || got != want {
			t.Errorf("%s became %s, want %s: %v", text, got, want, err)
		}
	}
	if _, err := s.expr(Expr{Where: "test", Text: "up["}); err == nil || !strings.Contains(err.Error(), "parse error") {
		t.Errorf("a mistake: %v", err)
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
