package admin_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/database"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// securityGrants are the rights that the page on security gives a role.
func securityGrants(t *testing.T, role string) (grants []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^GRANT (.*) TO (observerd_.*);$`).FindAllSubmatch(text, -1) {
		for to := range strings.SplitSeq(string(m[2]), ", ") {
			if to == role {
				grants = append(grants, string(m[1]))
			}
		}
	}
	if len(grants) < 2 {
		t.Fatalf("the page has the grants %q for %s", grants, role)
	}
	return grants
}

const revokeSQL = "REVOKE EXECUTE ON FUNCTION obs_int_lock() FROM PUBLIC"

// locksOf are the locks of a configuration that has nothing but a database.
func locksOf(t *testing.T, url string) *config.Config {
	t.Helper()
	return load(t, fmt.Appendf(nil, "database: {url: %q}\n", url))
}

// TestLocksNeedTheRightsOfThePage works with roles that have no others.
func TestLocksNeedTheRightsOfThePage(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	quiet := slog.New(slog.DiscardHandler)
	m := mustOpen(t, locksOf(t, url), quiet)
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if page, err := os.ReadFile("../../docs/security.md"); err != nil || !strings.Contains(string(page), revokeSQL+";") {
		t.Fatalf("the page does not revoke what is revoked here: %v", err)
	}
	run(t, url, revokeSQL)
	role := pgtest.NewRole(t, url, securityGrants(t, "observerd_locks")...)
	cfg := locksOf(t, role)
	useLocks(t, cfg)
	s, err := admin.LockSystem{Config: cfg, Logger: quiet, Provider: config.DatabaseProvider}.Stats(t.Context(), 10)
	if err != nil || len(s.Failed) != 1 {
		t.Errorf("the figures: %+v, %v", s, err)
	}
	looks := pgtest.NewRole(t, url, securityGrants(t, "observerd_dashboard")...)
	for _, view := range []string{"obs_active_locks", "obs_lock_stats"} {
		if err := query(t, looks, `SELECT count(*) FROM `+view); err != nil {
			t.Errorf("a role that only looks cannot read %s: %v", view, err)
		}
	}
	for _, refused := range []struct{ role, table string }{
		{role, "obs_event"}, {role, "obs_cursor"}, {role, "obs_audit"}, {looks, "obs_event"}, {looks, "obs_lock"}, {looks, "obs_hold"}, {looks, "obs_audit"},
	} {
		var denied *pgconn.PgError
		if err := query(t, refused.role, `SELECT 1 FROM `+refused.table); !errors.As(err, &denied) || denied.Code != "42501" {
			t.Errorf("the role may read %s: %v", refused.table, err)
		}
	}
}

func mustOpen(t *testing.T, cfg *config.Config, log *slog.Logger) *locks.Manager {
	t.Helper()
	m, err := admin.LockSystem{Config: cfg, Logger: log, Provider: config.DatabaseProvider}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// query runs a statement in a transaction of its own.
func query(t *testing.T, url, text string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), text)
	return err
}

// useLocks does what exec, the other commands and a program do. One lock was not to be had
// then.
func useLocks(t *testing.T, cfg *config.Config) {
	t.Helper()
	ctx := t.Context()
	var said bytes.Buffer // A process that cannot note that it lives goes on, and logs it.
	log := slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	m, other := mustOpen(t, cfg, log), mustOpen(t, cfg, log)
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	page := locks.Descriptor{Subject: "page", Predicate: "writing", Resources: []string{"fs-1", "3"}}
	l, err := m.Acquire(ctx, page, locks.WithIntents(), locks.HoldAtLeast(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	must("extend", l.Extend(ctx, time.Hour))
	must("guard", guarded(t, cfg, l))
	if _, err := other.Acquire(ctx, page, locks.FailFast()); !errors.Is(err, locks.ErrHeld) {
		t.Errorf("a second holder: %v", err)
	}
	found, err := other.Find(ctx, locks.Filter{Subject: "page"})
	if err != nil || len(found) != 1 {
		t.Fatalf("found %v, %v", found, err)
	}
	stolen, err := other.Steal(ctx, found[0], page)
	must("steal", err)
	if err == nil {
		must("release what was stolen", stolen.Release(ctx))
	}
	_ = l.Release(ctx) // It was lost.
	shared := locks.Descriptor{Subject: "schema", Predicate: "reading", Resources: []string{"a"}, Mode: locks.Shared}
	both := []locks.Descriptor{shared, {Subject: "schema", Predicate: "reading", Resources: []string{"b"}, Mode: locks.Shared}}
	for _, m := range []*locks.Manager{m, other} {
		all, err := m.AcquireAll(ctx, both)
		must("share", err)
		if m == other && err == nil {
			must("release", release(t, cfg, all[0]))
			continue
		}
		must("let go", all.Release(ctx))
	}
	must("close", errors.Join(m.Close(ctx), other.Close(ctx)))
	if strings.Contains(said.String(), "denied") {
		t.Errorf("the log tells of a right that is missing: %s", &said)
	}
}

// guarded commits a transaction under the lease.
func guarded(t *testing.T, cfg *config.Config, l *locks.Lease) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), cfg.Database.URL.Reveal())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(t.Context()) }()
	return pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error { return l.Guard(t.Context(), database.Tx(tx)) })
}

// release ends a lease as 'observerd locks release' does.
func release(t *testing.T, cfg *config.Config, l *locks.Lease) error {
	t.Helper()
	s := admin.LockSystem{Config: cfg, Logger: slog.New(slog.DiscardHandler), Provider: config.DatabaseProvider}
	return s.Release(t.Context(), l.Descriptor(), l.Term(), admin.By{Actor: "alice"})
}
