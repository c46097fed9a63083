package oracle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
	"github.com/observerd/observerd/test/kit/waittest"
)

// A machine with much else to do may be slower than the short timeouts of these
// tests, where nobody lies in wait for anything: then the read is repeated.
const patience = 30 * time.Second

// wantOrders reads the forty orders.
func wantOrders(t *testing.T, s *oracle.Source) {
	t.Helper()
	waittest.Eventually(t, patience, func() error {
		rows, err := sourcetest.TryRead(s, orders(), observer.Range{})
		if err == nil && len(rows) != 40 {
			t.Fatalf("%d rows, want 40", len(rows))
		}
		return err
	})
}

func TestSilentDatabase(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{}).withOrders(40)
	s := d.open(oracle.Options{QueryTimeout: 200 * time.Millisecond, FetchSize: 10})
	wantOrders(t, s)
	for stage, name := range map[oratest.Stage]string{oratest.Before: "before", oratest.Fetching: "fetching"} {
		trap := d.server.On(theRead, oratest.Fault{At: stage, Hang: true})
		var err error
		waittest.Eventually(t, patience, func() error {
			_, err = sourcetest.TryRead(s, orders(), observer.Range{})
			if trap.Hits() == 0 {
				return fmt.Errorf("not as far as that, with %w", err)
			}
			return nil
		})
		trap.Release()
		wantFault(t, name, err, observer.ClassTimeout, "")
		if !errors.Is(err, source.ErrSilent) {
			t.Errorf("%s: %v, want ErrSilent", name, err)
		}
	}
	trap := d.server.On(oratest.SQL("SYSTIMESTAMP"), oratest.Fault{Hang: true})
	_, err := s.Horizon(t.Context(), orders())
	trap.Release()
	wantFault(t, "a small statement", err, observer.ClassTimeout, "")
	wantOrders(t, s)
}

// A caller that goes away while the database does not answer is not held up for
// longer than the grace, and hears its own reason.
func TestCancelledWhileWaiting(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{}).withOrders(40)
	s := d.open(oracle.Options{FetchSize: 10})
	lost := errors.New("the lease was lost")
	sourcetest.ReadAll(t, s, orders(), observer.Range{}) // From now on a read asks first what it would return.
	for name, at := range map[string]struct {
		statement func(string) bool
		fault     oratest.Fault
	}{
		"execute":  {theRead, oratest.Fault{Hang: true}},
		"fetch":    {theRead, oratest.Fault{At: oratest.Fetching, Hang: true}},
		"deaf":     {theRead, oratest.Fault{Hang: true, Deaf: true}},
		"describe": {oratest.SQL("WHERE 1 = 0"), oratest.Fault{Hang: true}},
	} {
		trap := d.server.On(at.statement, at.fault)
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-trap.Reached()
			cancel(lost)
		}()
		began := time.Now()
		rows, err := s.Read(ctx, orders(), observer.Range{})
		if err == nil {
			for rows.Next() {
				continue
			}
			err = errors.Join(rows.Err(), rows.Close())
		}
		if !errors.Is(err, lost) || observer.ClassOf(err) != "" || time.Since(began) > 15*time.Second {
			t.Errorf("%s: %v after %s", name, err, time.Since(began))
		}
		trap.Release()
		cancel(nil)
	}
	if n := len(sourcetest.ReadAll(t, s, orders(), observer.Range{})); n != 40 {
		t.Errorf("%d rows afterwards, want 40", n)
	}
}

// The timeout is for the database; a reader may take longer over its rows.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	const timeout = 300 * time.Millisecond
	d := emulate(t, engine.Options{}).withOrders(40)
	s := d.open(oracle.Options{QueryTimeout: timeout, FetchSize: 10})
	waittest.Eventually(t, patience, func() error {
		rows, err := s.Read(t.Context(), orders(), observer.Range{})
		if err != nil {
			return err
		}
		n := 0
		for rows.Next() {
			if n++; n == 15 {
				<-time.After(3 * timeout) // The very thing under test is time.
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return fmt.Errorf("after %d rows: %w", n, err)
		}
		if n != 40 {
			t.Fatalf("%d rows, want 40", n)
		}
		return nil
	})
}
