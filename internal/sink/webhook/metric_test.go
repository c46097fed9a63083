package webhook_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/webhook"
)

// TestRequestsAreCounted has a receiver that takes one event, fails for the next, and is gone
// for the last.
func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	answers := []int{http.StatusAccepted, http.StatusServiceUnavailable}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(answers[0])
		answers = answers[1:]
	}))
	defer receiver.Close()
	var url field.URL
	if err := url.UnmarshalText([]byte(receiver.URL)); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	s, err := (&webhook.Settings{URL: url, Mode: "structured", Concurrency: 1, Timeout: time.Minute}).
		Opener(sink.Options{Sink: "shop", Registerer: registry})(t.Context(), sink.Term{})
	if err != nil {
		t.Fatal(err)
	}
	closeSink(t, s)
	for range 2 {
		_, _ = s.Deliver(t.Context(), batch("orders", 1, 1))
	}
	receiver.Close()
	_, _ = s.Deliver(t.Context(), batch("orders", 1, 1))
	if n, err := testutil.GatherAndCount(registry, "observerd_webhook_request_duration_seconds"); n != 3 || err != nil {
		t.Errorf("%d classes of answers, %v, want 2xx, 5xx and none", n, err)
	}
}
