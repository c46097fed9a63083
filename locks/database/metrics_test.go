package database_test

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/database"
)

func TestMetricsNameTheProvider(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		p, err := database.Open(t.Context(), url, database.Options{})
		if err != nil {
			t.Fatal(err)
		}
		reg := prometheus.NewRegistry()
		m, err := locks.Open(t.Context(), locks.Options{Provider: p, Node: "a", Registerer: reg})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = m.Close(context.Background()) }()
		_ = acquire(t, m, audit)
		provider, _, _ := strings.Cut(url, ":")
		want := `
# HELP observerd_locks_active_count Locks that this process holds.
# TYPE observerd_locks_active_count gauge
observerd_locks_active_count{mode="exclusive",predicate="processing",provider="` + provider + `",subject="audit"} 1
`
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "observerd_locks_active_count", "observerd_locks_stale_recovered_total"); err != nil {
			t.Error(err)
		}
	})
}
