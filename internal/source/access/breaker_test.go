package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// flaky is a source that fails as it is told.
type flaky struct {
	source.Database
	err   error
	calls int
}

func (f *flaky) Identity(context.Context) (string, error) {
	f.calls++
	return "", f.err
}

func (f *flaky) Read(context.Context, observer.Query, observer.Range) (observer.Rows, error) {
	return failingRows{source: f}, nil
}

type failingRows struct {
	observer.Rows
	source *flaky
}

func (r failingRows) Err() error { return r.source.err }

func unreachable() error {
	return &observer.Fault{Class: observer.ClassUnreachable, Err: fmt.Errorf("%w: connection refused", observer.ErrUnreachable)}
}

func watched(f *flaky) (*Source, *Metrics) {
	m := NewMetrics(prometheus.NewRegistry())
	m.prepare("erp")
	return &Source{name: "erp", opened: opened{Database: f}, metrics: m}, m
}

func TestSourceThatIsDownIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flaky{err: unreachable()}
		s, m := watched(f)
		// A call a second for an hour, as of many observers.
		for range 3600 {
			_, err := s.Identity(t.Context())
			if !errors.Is(err, observer.ErrUnreachable) || observer.ClassOf(err) != observer.ClassUnreachable ||
				!strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "for 0s") {
				t.Fatalf("an error that is another: %v", err)
			}
			time.Sleep(time.Second)
		}
		// 5, 10, 20 … 300 seconds and then 300 each, give or take a fifth.
		if f.calls < 14 || f.calls > 23 {
			t.Errorf("%d attempts in an hour, want about 18", f.calls)
		}
		if up := testutil.ToFloat64(m.up.WithLabelValues("erp")); up != 0 {
			t.Errorf("up is %v", up)
		}
		if n := testutil.ToFloat64(m.failures.WithLabelValues("erp", "unreachable")); int(n) != f.calls {
			t.Errorf("%v failures of %d attempts are counted", n, f.calls)
		}
		// The first success closes it.
		f.err = nil
		time.Sleep(mostOpen + mostOpen/5)
		for range 3 {
			if _, err := s.Identity(t.Context()); err != nil {
				t.Errorf("after it came back: %v", err)
			}
		}
		if up := testutil.ToFloat64(m.up.WithLabelValues("erp")); up != 1 {
			t.Errorf("up is %v", up)
		}
		f.err, f.calls = unreachable(), 0
		_, _ = s.Identity(t.Context())
		time.Sleep(leastOpen + leastOpen/5)
		_, _ = s.Identity(t.Context())
		if f.calls != 2 {
			t.Errorf("%d attempts: the pause of a new outage is not short again", f.calls)
		}
	})
}

func TestOneCallTriesWhenThePauseIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flaky{err: unreachable()}
		s, _ := watched(f)
		_, _ = s.Identity(t.Context())
		time.Sleep(leastOpen + leastOpen/5)
		if err := s.breaker.allow(); err != nil {
			t.Fatal(err)
		}
		if err := s.breaker.allow(); err == nil {
			t.Error("a second one tries beside the first")
		}
	})
}

func TestOtherFailuresKeepTheBreakerClosed(t *testing.T) {
	t.Parallel()
	for _, class := range []observer.Class{observer.ClassQuery, observer.ClassTimeout, observer.ClassCredentials} {
		f := &flaky{err: &observer.Fault{Class: class, Err: errors.New("no")}}
		s, m := watched(f)
		for range 3 {
			if _, err := s.Identity(t.Context()); observer.ClassOf(err) != class {
				t.Errorf("%s: %v", class, err)
			}
		}
		if n := testutil.ToFloat64(m.failures.WithLabelValues("erp", string(class))); f.calls != 3 || n != 3 {
			t.Errorf("%s: %d attempts, %v counted", class, f.calls, n)
		}
		want := 1.0
		if class == observer.ClassCredentials {
			want = 0
		}
		if up := testutil.ToFloat64(m.up.WithLabelValues("erp")); up != want {
			t.Errorf("%s: up is %v", class, up)
		}
	}
	// The end of a context is the caller's affair.
	f := &flaky{err: context.Canceled}
	s, m := watched(f)
	_, _ = s.Identity(t.Context())
	if n := testutil.CollectAndCount(m.up); n != 0 {
		t.Errorf("a call that was ended says whether the source is up")
	}
}

func TestSourceThatIsLostWhileItIsRead(t *testing.T) {
	t.Parallel()
	f := &flaky{}
	s, m := watched(f)
	rows, err := s.Read(t.Context(), observer.Query{}, observer.Range{})
	if err != nil {
		t.Fatal(err)
	}
	f.err = unreachable()
	for range 2 {
		if !errors.Is(rows.Err(), observer.ErrUnreachable) {
			t.Errorf("error of the rows: %v", rows.Err())
		}
	}
	if n := testutil.ToFloat64(m.failures.WithLabelValues("erp", "unreachable")); n != 1 {
		t.Errorf("%v failures counted", n)
	}
	if _, err := s.Identity(t.Context()); !errors.Is(err, observer.ErrUnreachable) || f.calls != 0 {
		t.Errorf("the next call: %v, %d attempts", err, f.calls)
	}
}
