package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/lockkind"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/test/kit/lockdbtest"
)

// lockers are the settings of a kind of lock provider that no package of the program knows.
type lockers struct {
	Place string `key:"place" required:"true" unit:"text"`

	store *lockersStore
}

func (l *lockers) Target() (key, place string)     { return "place", l.Place }
func (*lockers) Check(field.Report)                {}
func (l *lockers) For(string) lockkind.Settings    { return l }
func (l *lockers) Capabilities() lock.Capabilities { return l.store.Capabilities() }

func (l *lockers) Probe(context.Context) []kind.Finding {
	switch l.Place {
	case "slow":
		return []kind.Finding{{Warning: true, Err: errors.New("it evicts; set noeviction")}}
	case "readable":
		return []kind.Finding{{Err: errors.New("it is a replica; name the master")}}
	}
	return nil
}

func (l *lockers) Open(lockkind.Options) (lock.Provider, error) {
	if l.Place == "shut" {
		return nil, errors.New("there is no key to it")
	}
	l.store.open.Add(1)
	return l.store, nil
}

// lockersStore is their provider, and counts how often it is open.
type lockersStore struct {
	locktest.Memory

	open atomic.Int32
	bare bool // without what only some providers have
}

func (s *lockersStore) Close() error {
	s.open.Add(-1)
	return nil
}

func (s *lockersStore) Capabilities() lock.Capabilities {
	c := s.Memory.Capabilities()
	c.Name, c.Closer = "lockers", s
	if s.bare {
		c.Finder, c.Stealer = nil, nil
		return c
	}
	c.Sweep = func(_ context.Context, region string, before time.Time) (int, error) {
		if ago := time.Since(before); region != "TEAM" || ago < time.Hour || ago > time.Hour+time.Minute {
			return 0, fmt.Errorf("asked to sweep %s from %s ago on", region, ago)
		}
		return 3, nil
	}
	return c
}

// withLockers loads a configuration with these lock providers. Its coordination database
// does not exist, unless url is one.
func withLockers(t *testing.T, url, providers string, store *lockersStore) *config.Config {
	t.Helper()
	folder := t.TempDir()
	if url == "" {
		url = "sqlite:" + filepath.Join(folder, "none.db")
	}
	path := filepath.Join(folder, "config.yaml")
	text := fmt.Appendf(nil, "database: {url: %q}\nlocks: {region: TEAM, providers: [%s]}\n", url, providers)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	kinds := wiring.Kinds()
	kinds.LockProviders = append(kinds.LockProviders, kind.Kind[kind.Settings]{Name: "lockers", Settings: func() kind.Settings { return &lockers{store: store} }})
	cfg, _, err := config.Load(config.Options{Kinds: kinds, Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestAnotherKindOfLockProvider adds a kind to the list, and nothing else: its locks are
// taken, listed, stolen, released and swept, and the coordination database is not made.
func TestAnotherKindOfLockProvider(t *testing.T) {
	t.Parallel()
	store := new(lockersStore)
	cfg := withLockers(t, "", "{id: hall, type: lockers, place: hall}", store)
	var said strings.Builder
	s := admin.LockSystem{Config: cfg, Logger: slog.New(slog.NewTextHandler(&said, nil)), Provider: "hall"}
	m, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := locks.Name("nightly")
	d.Mode = locks.Shared
	var leases []*locks.Lease
	for range 3 {
		l, err := m.Acquire(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, l)
	}
	found, err := s.Find(t.Context(), admin.HoldersOf(d))
	if err != nil || len(found) != 3 {
		t.Fatalf("found %v, %v", found, err)
	}
	i := slices.IndexFunc(found, func(l locks.Found) bool { return l.Term == leases[1].Term() })
	if _, err := m.Steal(t.Context(), found[i], d); err != nil {
		t.Errorf("steal: %v", err)
	}
	by := admin.By{Actor: "alice", Reason: "it hangs"}
	if err := s.Release(t.Context(), d, leases[0].Term(), by); err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf(`level=WARN msg="Lock released by an operator" provider=hall lock=name:nightly term=%s holder=%s actor=alice reason="it hangs"`, leases[0].Term(), cfg.Node.Name)
	if !strings.Contains(said.String(), line) {
		t.Errorf("the log has\n%swithout\n%s", &said, line)
	}
	said.Reset()
	for _, term := range []string{leases[0].Term(), leases[1].Term()} { // released, and stolen
		if err := s.Release(t.Context(), d, term, by); !errors.Is(err, locks.ErrLost) || said.Len() > 0 {
			t.Errorf("a term that has ended was released: %v, and the log says %s", err, &said)
		}
	}
	if found, err = s.Find(t.Context(), admin.HoldersOf(d)); err != nil || len(found) != 2 {
		t.Errorf("two are left, and %v was found: %v", found, err)
	}
	if n, err := s.Sweep(t.Context(), time.Hour); n != 3 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if n := store.open.Load(); n != 0 {
		t.Errorf("%d are open", n)
	}
	if _, err := os.Stat(cfg.Database.URL.Path()); !os.IsNotExist(err) {
		t.Errorf("the coordination database: %v", err)
	}
}

// TestWhatLockProvidersLack asks for what is not there.
func TestWhatLockProvidersLack(t *testing.T) {
	t.Parallel()
	bare := &lockersStore{bare: true}
	cfg := withLockers(t, lockdbtest.SQLite(t), "{id: hall, type: lockers, place: hall}, {id: gate, type: lockers, place: shut}", bare)
	system := func(provider string) admin.LockSystem {
		return admin.LockSystem{Config: cfg, Logger: slog.New(slog.DiscardHandler), Provider: provider}
	}
	d := locks.Name("nightly")
	for name, test := range map[string]struct {
		act  func(context.Context) error
		want string
		is   wiring.Fault
	}{
		"counts":           {func(ctx context.Context) error { _, err := system("hall").Stats(ctx, 1); return err }, "lock provider hall: lockers keeps no counts; only the coordination database does: not supported by this lock provider", wiring.Misused},
		"a sweep":          {func(ctx context.Context) error { _, err := system("hall").Sweep(ctx, time.Hour); return err }, "lock provider hall: lockers has nothing to sweep: ", wiring.Misused},
		"of the database":  {func(ctx context.Context) error { _, err := system("database").Sweep(ctx, time.Hour); return err }, "lock provider database: sqlite has nothing to sweep: ", wiring.Misused},
		"a list":           {func(ctx context.Context) error { _, err := system("hall").Find(ctx, locks.Filter{}); return err }, "lock provider hall: find locks: not supported", wiring.Misused},
		"a release":        {func(ctx context.Context) error { return system("hall").Release(ctx, d, "a", admin.By{}) }, "lock provider hall: lockers does not list its locks: ", wiring.Misused},
		"an unknown one":   {func(ctx context.Context) error { _, err := system("x").Open(ctx); return err }, `there is no lock provider "x"; there is database, gate, hall`, wiring.Misused},
		"one that is near": {func(ctx context.Context) error { return system("hal").Release(ctx, d, "a", admin.By{}) }, `there is no lock provider "hal"; is it hall?`, wiring.Misused},
		"one that is shut": {func(ctx context.Context) error { _, err := system("gate").Open(ctx); return err }, "lock provider gate: there is no key to it", wiring.Misconfigured},
	} {
		if err := test.act(t.Context()); err == nil || !strings.HasPrefix(err.Error(), test.want) || wiring.FaultOf(err) != test.is {
			t.Errorf("%s: %v", name, err)
		}
	}
	bare.bare = false
	bare.Fail(context.DeadlineExceeded)
	if err := system("hall").Release(t.Context(), d, "a", admin.By{}); errors.Is(err, locks.ErrLost) || wiring.FaultOf(err) != wiring.Unavailable {
		t.Errorf("a provider that is down says %v", err)
	}
	if n := bare.open.Load(); n != 0 {
		t.Errorf("%d are open", n)
	}
}

// TestProbedLockProviders has one that can be used, one with a warning and one that is
// refused.
func TestProbedLockProviders(t *testing.T) {
	t.Parallel()
	cfg := withLockers(t, lockdbtest.SQLite(t), "{id: a, type: lockers, place: hall}, {id: b, type: lockers, place: slow}, {id: c, type: lockers, place: readable}", new(lockersStore))
	v := admin.Validate(t.Context(), admin.ValidateOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler), Timeout: time.Minute})
	if err := v.Err(); err == nil || err.Error() != "lock provider c: it is a replica; name the master: it is a replica; name the master" || wiring.FaultOf(err) != wiring.Misconfigured {
		t.Errorf("validate says %v", err)
	}
	if !slices.Equal(v.NotReady(), []string{"lock provider c"}) || v.Warnings() != 1 || len(v.LockProviders) != 3 || !strings.HasPrefix(v.LockProviders["a"], "lockers: least TTL any, ") {
		t.Errorf("not ready: %v, %d warnings, providers %v", v.NotReady(), v.Warnings(), v.LockProviders)
	}
	d, err := admin.Doctor(t.Context(), cfg, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range d.Findings {
		if strings.HasPrefix(f.Check, "lock provider ") {
			found = append(found, string(f.Severity)+" "+f.Check+" "+f.Saw)
		}
	}
	if want := []string{"warning lock provider b it evicts; set noeviction", "problem lock provider c it is a replica; name the master"}; !slices.Equal(found, want) {
		t.Errorf("the doctor says %q", found)
	}
}
