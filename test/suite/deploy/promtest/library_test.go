package promtest_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/database"
	"github.com/observerd/observerd/locks/github"
	"github.com/observerd/observerd/test/kit/lockdbtest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// libraryMetrics are those of a program that uses package locks, to which all has happened
// that they count.
func libraryMetrics(t *testing.T) []byte {
	t.Helper()
	reg, url := client.NewRegistry(), lockdbtest.SQLite(t)
	p, err := database.Open(t.Context(), url, database.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := locks.Open(t.Context(), locks.Options{Provider: p, Registerer: reg})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	acquire := func(predicate, resource string, options ...locks.Option) *locks.Lease {
		t.Helper()
		l, err := m.Acquire(t.Context(), locks.Descriptor{Subject: "fileset", Predicate: predicate, Resources: []string{resource}}, options...)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if err := acquire("reading", "free").Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	dead := acquire("reading", "held")
	if _, err := m.Acquire(t.Context(), dead.Descriptor(), locks.FailFast()); !errors.Is(err, locks.ErrHeld) {
		t.Fatal(err)
	}
	expire(t, strings.TrimPrefix(url, "sqlite:"), dead.Term())
	acquire("reading", "held")
	<-acquire("reading", "too long", locks.MaxHold(time.Millisecond)).Context().Done()

	var text bytes.Buffer
	waittest.Eventually(t, time.Minute, func() error {
		families, err := reg.Gather()
		if err != nil {
			return err
		}
		if n := 10; len(families) != n {
			return fmt.Errorf("%d metrics, want %d", len(families), n)
		}
		text.Reset()
		for _, family := range families {
			if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
				return err
			}
		}
		return nil
	})
	return text.Bytes()
}

// githubMetrics are those of the provider of locks of issues.
func githubMetrics(t *testing.T) []byte {
	t.Helper()
	reg := client.NewRegistry()
	_, err := github.Open(t.Context(), github.Options{Repository: "acme/tasks", Token: func() (string, error) { return "", nil }, Registerer: reg})
	if err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(err, families)
	}
	var text bytes.Buffer
	if _, err := expfmt.MetricFamilyToText(&text, families[0]); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// TestMetricsOfTheLibraryAreDocumented compares them with docs/locks.md, both ways.
func TestMetricsOfTheLibraryAreDocumented(t *testing.T) {
	t.Parallel()
	series := regexp.MustCompile(`(_seconds)_(bucket|sum|count)$`)
	var has, says []string
	for name := range readSchema(t, libraryMetrics(t)) {
		if name, ok := strings.CutPrefix(name, "observerd_locks"); ok {
			has = append(has, series.ReplaceAllString(name, "$1"))
		}
	}
	for _, m := range ofLibrary.FindAllStringSubmatch(read(t, docs, "locks.md"), -1) {
		says = append(says, m[1])
	}
	slices.Sort(has)
	slices.Sort(says)
	if has, says = slices.Compact(has), slices.Compact(says); !slices.Equal(has, says) {
		t.Errorf("the metrics are %q, and docs/locks.md has %q", has, says)
	}
}

// expire ages a lease past its TTL, as if its holder had slept.
func expire(t *testing.T, path, term string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err == nil {
		_, err = db.ExecContext(t.Context(), `UPDATE int_lock SET created_date = '2000-01-01 00:00:00.000000' WHERE client_id = ?`, term)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
