package observer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

func TestNewReportsEveryMistake(t *testing.T) {
	t.Parallel()
	_, err := observer.New(observer.Spec{Detect: "sometimes", ChunkRows: -1, MaxChanged: -1, MaxGone: 1.5, CommitTimeout: -1,
		MaxRate: -1, Start: observer.Start{Now: true, At: time.Unix(1, 0)},
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"stream is empty",
		"event type is empty",
		`detection is "sometimes", want new, change or snapshot`,
		"want either a table or a query",
		"key is empty, and only a table has a primary key",
		"chunk size",
		"limit of changed rows",
		"may be gone",
		"commit timeout",
		"rate of rows",
		"start is both",
		"start needs a timestamp",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("does not say %q: %v", want, err)
		}
	}
}

func TestNewWantsOneOfTableAndQuery(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		table, sql string
		ok         bool
	}{{"t", "", true}, {"", "SELECT 1", true}, {"t", "SELECT 1", false}, {"", "", false}} {
		_, err := observer.New(observer.Spec{
			Stream: "s", EventType: "E", Detect: observer.DetectNew,
			Query: observer.Query{Table: test.table, SQL: test.sql, Key: []string{"id"}},
		})
		equal(t, "accepted", err == nil, test.ok)
	}
}
