package access

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

// logging is a source that logs on for an identity, and is refused when it is
// told; all else fails in a session that it has.
type logging struct {
	flaky
	gate   *credentialGate
	tried  int
	refuse chan struct{}
	err    error
}

func (l *logging) Identity(ctx context.Context) (string, error) {
	if err := l.gate.Allow(ctx); err != nil {
		return "", err
	}
	l.tried++
	<-l.refuse
	err := &observer.Fault{Class: observer.ClassCredentials, Code: "28P01", Err: errors.New("denied")}
	l.gate.Refused(ctx, err)
	return "", err
}

func (l *logging) Horizon(context.Context, observer.Query) (observer.Horizon, error) {
	return observer.Horizon{}, l.err
}

func (l *logging) Read(context.Context, observer.Query, observer.Range) (observer.Rows, error) {
	return failingRows{source: &flaky{err: l.err}}, nil
}

// TestFailedQueryLetsNoLogonInBesideAnother has a session of the account fail
// while another one logs on, and more who wait for that.
func TestFailedQueryLetsNoLogonInBesideAnother(t *testing.T) {
	for _, class := range []observer.Class{observer.ClassQuery, observer.ClassTimeout, observer.ClassKilled} {
		t.Run(string(class), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := gateOf(newBook(), "a", "secret")
				l := &logging{gate: g, refuse: make(chan struct{}), err: &observer.Fault{Class: class, Err: errors.New("failed")}}
				s, other := &Source{name: "erp", opened: opened{Database: l, gate: g}}, &Source{name: "wms", opened: opened{Database: l, gate: g}}
				ended := make(chan error, 3)
				for range cap(ended) {
					go func() {
						_, err := s.Identity(t.Context())
						ended <- err
					}()
				}
				synctest.Wait()
				for _, failing := range []*Source{s, other} {
					if _, err := failing.Horizon(t.Context(), observer.Query{}); observer.ClassOf(err) != class {
						t.Fatal(err)
					}
					rows, err := failing.Read(t.Context(), observer.Query{}, observer.Range{})
					if err != nil || observer.ClassOf(rows.Err()) != class {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				if l.tried != 1 {
					t.Errorf("%d logons at a time", l.tried)
				}
				close(l.refuse)
				for range cap(ended) {
					if err := <-ended; !isRefusal(err) {
						t.Error(err)
					}
				}
				if l.tried != 1 {
					t.Errorf("%d logons with a wrong password, want 1", l.tried)
				}
			})
		})
	}
}

// TestLogonThatFailsLetsTheNextInAtOnce is of a listener that is down, say, and of a
// source that tells its gate nothing of that.
func TestLogonThatFailsLetsTheNextInAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(newBook(), "a", "secret")
		s := &Source{name: "erp", opened: opened{Database: &lost{gate: g}, gate: g}}
		began := time.Now()
		if _, err := s.Identity(t.Context()); observer.ClassOf(err) != observer.ClassSettings {
			t.Fatal(err)
		}
		if d := waited(t.Context(), t, g); d != 0 || !time.Now().Equal(began) {
			t.Errorf("the next waits for %v", d)
		}
	})
}

// lost is a source whose logons end before the account is looked at.
type lost struct {
	flaky
	gate *credentialGate
}

func (l *lost) Identity(ctx context.Context) (string, error) {
	if err := l.gate.Allow(ctx); err != nil {
		return "", err
	}
	return "", &observer.Fault{Class: observer.ClassSettings, Err: errors.New("no such service")}
}
