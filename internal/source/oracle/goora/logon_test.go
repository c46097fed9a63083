package goora_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/oracle/client"
	"github.com/observerd/observerd/test/kit/oratest"
)

// gate remembers refusals as the coordination database does.
type gate struct {
	mu                                sync.Mutex
	allow, accepted, refusals, failed int
	held                              *observer.Fault
	// asked is called when a logon is let through; nil does nothing.
	asked func()
}

func (g *gate) Allow(context.Context) (func(error), error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.allow++; g.held != nil {
		return nil, g.held
	}
	if g.asked != nil {
		g.asked()
	}
	return g.ended, nil
}

func (g *gate) ended(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case err == nil:
		g.accepted++
	case observer.ClassOf(err) == observer.ClassCredentials:
		g.refusals++
		g.held = &observer.Fault{Class: observer.ClassCredentials, Err: fmt.Errorf("held back: %w", err)}
	default:
		g.failed++
	}
}

// together asks eight times at once and returns the errors.
func together(t *testing.T, db *sql.DB) []error {
	db.SetMaxOpenConns(8)
	failures := make([]error, 8)
	var work sync.WaitGroup
	for i := range failures {
		work.Go(func() { _, failures[i] = ask(t.Context(), db, "SELECT 1") })
	}
	work.Wait()
	return failures
}

func TestWrongPasswordIsTriedOnce(t *testing.T) {
	s := start(t)
	at := target(s)
	g := &gate{}
	at.Password, at.Gate = "wröng", g
	for _, err := range together(t, open(t, at)) {
		fault := client.Classify(err)
		if fault == nil || fault.Class != observer.ClassCredentials || strings.Contains(fault.Error(), "wröng") {
			t.Error(err)
		}
	}
	if s.FailedLogons() != 1 || g.refusals != 1 || g.accepted+g.failed != 0 {
		t.Errorf("%d logons failed, the gate was told %+v", s.FailedLogons(), g)
	}
	if !eventually(func() bool { return s.Open() == 0 }) {
		t.Error("a failed logon left its socket open")
	}
}

func TestGateIsAsked(t *testing.T) {
	s := start(t)
	at := target(s)
	g := &gate{}
	at.Gate = g
	for _, err := range together(t, open(t, at)) {
		if err != nil {
			t.Error(err)
		}
	}
	if g.accepted != s.Logons() || g.allow != s.Logons() || g.refusals+g.failed != 0 {
		t.Errorf("%d logons, the gate was told %+v", s.Logons(), g)
	}
	g.mu.Lock()
	g.held = &observer.Fault{Class: observer.ClassCredentials, Err: errors.New("held back")}
	g.mu.Unlock()
	connects := s.Connects()
	_, err := ask(t.Context(), open(t, at), "SELECT 1")
	if !errors.Is(err, g.held) || s.Connects() != connects {
		t.Error(err)
	}
}

func TestAccountsThatMayNotLogOn(t *testing.T) {
	for _, code := range []int{1005, 1017, 1045, 28000, 28001} {
		s := start(t)
		at := target(s)
		g := &gate{}
		at.Gate = g
		s.OnCall(oratest.Logon, oratest.Fail(code))
		_, err := ask(t.Context(), open(t, at), "SELECT 1")
		if fault := client.Classify(err); fault == nil || fault.Class != observer.ClassCredentials || g.refusals != 1 || g.failed != 0 {
			t.Error(code, err, g)
		}
	}
}

// Failures that say nothing about the account do not close the gate, and it
// hears of their end.
func TestListenerRefuses(t *testing.T) {
	s := start(t)
	for code, want := range map[int]observer.Class{
		12514: observer.ClassSettings, 12505: observer.ClassSettings, 12519: observer.ClassResource, 12528: observer.ClassUnreachable, 0: observer.ClassSettings,
	} {
		at := target(s)
		g := &gate{}
		at.Gate = g
		s.Refuse(-1, code)
		_, err := ask(t.Context(), open(t, at), "SELECT 1")
		if fault := client.Classify(err); fault == nil || fault.Class != want || errors.Is(err, io.EOF) && code != 0 {
			t.Errorf("%d: %v", code, err)
		}
		if g.refusals+g.accepted != 0 || g.failed == 0 || g.failed != g.allow {
			t.Errorf("%d: the gate was told %+v", code, g)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	at := client.Target{User: user, Password: password, Servers: []string{nobody}, Service: "X", ConnectTimeout: soon, Grace: grace, Gate: source.Open{}, Era: new(source.Era)}
	_, err := ask(t.Context(), open(t, at), "SELECT 1")
	if !errors.Is(err, client.ErrConnect) || client.Classify(err).Class != observer.ClassUnreachable {
		t.Error(err)
	}
	at.Servers = []string{"no-such-host.invalid:1521"}
	_, err = ask(t.Context(), open(t, at), "SELECT 1")
	if class := client.Classify(err).Class; class != observer.ClassSettings && class != observer.ClassUnreachable {
		t.Error(err)
	}
}

// The connect timeout covers what comes after dialling, too.
func TestConnectTimeout(t *testing.T) {
	for name, lay := range map[string]func(*oratest.Server){
		"mute":   func(s *oratest.Server) { s.Mute(true) },
		"logon":  func(s *oratest.Server) { s.OnCall(oratest.Logon, oratest.Fault{Hang: true, Deaf: true}) },
		"set up": func(s *oratest.Server) { s.On(oratest.SQL("ALTER"), oratest.Fault{Hang: true, Deaf: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			lay(s)
			at := target(s)
			at.ConnectTimeout = 300 * time.Millisecond
			g := &gate{}
			at.Gate = g
			begun := time.Now()
			_, err := ask(t.Context(), open(t, at), "SELECT 1")
			if !errors.Is(err, context.DeadlineExceeded) || client.Classify(err).Class != observer.ClassUnreachable {
				t.Error(err)
			}
			if took := time.Since(begun); took < at.ConnectTimeout || took > soon {
				t.Errorf("it took %v", took)
			}
			if g.failed != 1 || g.allow != 1 || g.accepted != 0 {
				t.Errorf("the gate was told %+v", g)
			}
			if !eventually(func() bool { return s.Open() == 0 }) {
				t.Error("the socket stays open")
			}
		})
	}
}

func TestCallerGivesUpConnecting(t *testing.T) {
	s := start(t)
	s.Mute(true)
	at := target(s)
	at.ConnectTimeout = 2 * soon
	ctx, took := within(t, deadline)
	_, err := ask(ctx, open(t, at), "SELECT 1")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	took(soon)
}

// A logon that is given up has ended as long as there is no socket; later, the
// database may have the password, and nobody knows what it makes of that.
func TestGateHearsOfTheEndOfLogonsThatAreGivenUp(t *testing.T) {
	s := start(t)
	at := target(s)
	ctx, giveUp := context.WithCancel(t.Context())
	g := &gate{asked: giveUp}
	at.Gate = g
	_, err := ask(ctx, open(t, at), "SELECT 1")
	if !errors.Is(err, context.Canceled) || g.allow != 1 || g.failed != 1 || s.Connects() != 0 {
		t.Errorf("before there is a socket: %v; the gate was told %+v", err, g)
	}

	ctx, giveUp = context.WithCancel(t.Context())
	trap := s.OnCall(oratest.Logon, oratest.Fault{Hang: true, Deaf: true})
	go func() {
		<-trap.Reached()
		giveUp()
	}()
	g = &gate{}
	at.Gate = g
	_, err = ask(ctx, open(t, at), "SELECT 1")
	if !errors.Is(err, context.Canceled) || g.allow != 1 || g.failed+g.refusals+g.accepted != 0 {
		t.Errorf("while the database looks at the password: %v; the gate was told %+v", err, g)
	}
}
