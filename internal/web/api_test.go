package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/web"
)

// lookups are those of a database that answers what they hold.
type lookups struct {
	polls func(ctx context.Context) error
}

func (l lookups) Observer(_ context.Context, r status.Report, i int) (status.ObserverDetails, error) {
	return status.ObserverDetails{Observer: r.Observers[i]}, nil
}

func (l lookups) Polls(ctx context.Context, _ string, limit int) ([]status.Poll, error) {
	return make([]status.Poll, limit), l.polls(ctx)
}

func (l lookups) Locks(context.Context, string, int) ([]status.HeldLock, error) { return nil, nil }

func (l lookups) Events(context.Context, string, int) ([]events.Event, error) { return nil, nil }

// TestAPILooksUpALittleAtATime has as many requests wait for the database as may, and asks once more.
func TestAPILooksUpALittleAtATime(t *testing.T) {
	t.Parallel()
	const most = 4
	asked, answer := make(chan struct{}, most), make(chan struct{})
	o := options()
	o.Lookups = lookups{polls: func(context.Context) error {
		asked <- struct{}{}
		<-answer
		return nil
	}}
	s := start(t, o)
	var waiting sync.WaitGroup
	for range most {
		waiting.Go(func() {
			if resp, body := plain(t, s).do("GET", "/api/v1/polls?limit=3"); resp.StatusCode != http.StatusOK || strings.Count(body, `"observer"`) != 3 {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		})
		<-asked
	}
	if resp, body := plain(t, s).do("GET", "/api/v1/status"); resp.StatusCode != http.StatusOK {
		t.Errorf("the status, which all share: %d %s", resp.StatusCode, body)
	}
	resp, body := plain(t, s).do("GET", "/api/v1/polls")
	var problem struct{ Status int }
	if err := json.Unmarshal([]byte(body), &problem); err != nil || resp.StatusCode != http.StatusTooManyRequests || problem.Status != resp.StatusCode ||
		resp.Header.Get("Retry-After") != "1" || resp.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
	close(answer)
	waiting.Wait()
	if resp, body := plain(t, s).do("GET", "/api/v1/openapi.json"); resp.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %d %s", resp.StatusCode, body)
	}
}

// TestAPIGivesTheDatabaseADeadline has a lookup see its deadline, and fail.
func TestAPIGivesTheDatabaseADeadline(t *testing.T) {
	t.Parallel()
	o := options()
	o.Lookups = lookups{polls: func(ctx context.Context) error {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("a lookup may take for ever")
		}
		return errors.New("it is down")
	}}
	resp, body := plain(t, start(t, o)).do("GET", "/api/v1/polls")
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "5" || !strings.Contains(body, "they say: it is down") {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
}

// TestAPIHasTheRulesOfThePages asks it as those are asked who are refused everywhere.
func TestAPIHasTheRulesOfThePages(t *testing.T) {
	t.Parallel()
	o := options()
	o.Listen, o.Protected = "0.0.0.0:0", func() error { return nil }
	s := start(t, o) // Requests without TLS are refused.
	_, port, _ := strings.Cut(strings.Replace(s.Addr(), "[::]", "", 1), ":")
	c := client{t, "http://127.0.0.1:" + port, &http.Transport{DisableKeepAlives: true}}
	for _, path := range []string{"status", "observers/orders", "polls", "locks", "events", "openapi.json", "nope"} {
		if resp, body := c.do("GET", "/api/v1/"+path); resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "http.web-config") {
			t.Errorf("%s without TLS: %d %s", path, resp.StatusCode, body)
		}
		for _, method := range []string{"POST", "DELETE"} {
			if resp, _ := plain(t, start(t, options())).do(method, "/api/v1/"+path); resp.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d", method, path, resp.StatusCode)
			}
		}
		if resp, _ := plain(t, start(t, options())).do("GET", "/api/v1/"+path, func(r *http.Request) { r.Host = "evil.example" }); resp.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s of a foreign host: %d", path, resp.StatusCode)
		}
	}
}

var _ web.Lookups = lookups{}
