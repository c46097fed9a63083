package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/lockkind"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/database"
)

// LockSystem is the general locks of the configuration that one provider keeps.
type LockSystem struct {
	// Config and Logger are required.
	Config *config.Config
	Logger *slog.Logger
	// Provider is the id of the provider: [config.DatabaseProvider], or one of the
	// configuration. Of another one the coordination database is not opened. Required.
	Provider string
}

// Open opens the locks to acquire some. It brings the coordination database up to date
// first, as a node does at its start.
func (s LockSystem) Open(ctx context.Context) (*locks.Manager, error) {
	if s.Provider == config.DatabaseProvider {
		if err := migrateLikeANode(ctx, s.Config, s.Logger); err != nil {
			return nil, err
		}
	}
	return s.manager(ctx)
}

// HoldersOf finds all who hold a lock, in whatever mode and for whatever it does.
func HoldersOf(d locks.Descriptor) locks.Filter {
	return locks.Filter{Key: d.Key(), Limit: 1 << 20}
}

// Find returns the locks that are held. It changes nothing.
func (s LockSystem) Find(ctx context.Context, f locks.Filter) (found []locks.Found, err error) {
	m, err := s.manager(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { closed := m.Close(ctx); err = s.named(cmp.Or(err, closed)) }() // Of a time that is over one says it.
	return m.Find(ctx, f)
}

// Release ends the lease that has the term, whoever holds it, and notes by whom: in the
// audit table of the coordination database, in the log for every other provider. The error
// is [locks.ErrLost] when the term does not hold the lock.
func (s LockSystem) Release(ctx context.Context, d locks.Descriptor, term string, by By) error {
	return s.use(ctx, func(p locks.Provider) error {
		region := s.Config.Locks.Region
		if db, ok := p.(*database.Provider); ok {
			return db.ReleaseLock(ctx, region, d.Key(), term, by)
		}
		if p.Capabilities().Finder == nil {
			return lacks(p, "does not list its locks")
		}
		found, err := p.Capabilities().Finder.Find(ctx, lock.Query{Region: region, Key: d.Key(), Limit: HoldersOf(d).Limit})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(found, func(h lock.Held) bool { return h.Term == term })
		if i < 0 {
			return locks.ErrLost
		}
		if err = p.Release(ctx, found[i].Grant); err == nil {
			s.Logger.Warn("Lock released by an operator", "provider", s.Provider, "lock", d.Key(), "term", term, "holder", found[i].Node, "actor", by.Actor, "reason", by.Reason)
		}
		return err
	})
}

// Stats returns the figures of the locks of all processes, with as many of the locks that
// acquisitions failed for. The error is [locks.ErrUnsupported] for another provider than the
// coordination database.
func (s LockSystem) Stats(ctx context.Context, failed int) (stats database.Stats, err error) {
	err = s.use(ctx, func(p locks.Provider) (err error) {
		if db, ok := p.(*database.Provider); ok {
			stats, err = db.Stats(ctx, s.Config.Locks.Region, failed)
			return err
		}
		return lacks(p, "keeps no counts; only the coordination database does")
	})
	return stats, err
}

// Sweep removes what holders left that was not used for that time, and returns how much. The
// error is [locks.ErrUnsupported] for a provider without such leftovers.
func (s LockSystem) Sweep(ctx context.Context, unused time.Duration) (removed int, err error) {
	err = s.use(ctx, func(p locks.Provider) (err error) {
		if sweep := p.Capabilities().Sweep; sweep != nil {
			removed, err = sweep(ctx, s.Config.Locks.Region, time.Now().Add(-unused))
			return err
		}
		return lacks(p, "has nothing to sweep: abandoned locks expire, or nodes remove them")
	})
	return removed, err
}

// use calls f with the provider.
func (s LockSystem) use(ctx context.Context, f func(locks.Provider) error) error {
	p, err := s.provider(ctx)
	if err != nil {
		return err
	}
	err = f(p)
	if closer := p.Capabilities().Closer; closer != nil {
		err = errors.Join(err, closer.Close())
	}
	return s.named(err)
}

func lacks(p locks.Provider, what string) error {
	return fmt.Errorf("%s %s: %w", p.Capabilities().Name, what, locks.ErrUnsupported)
}

// named says of which provider the error is.
func (s LockSystem) named(err error) error {
	if err == nil || s.Provider == config.DatabaseProvider && !errors.Is(err, locks.ErrUnsupported) {
		return err // Errors of the database say so.
	}
	return fmt.Errorf("lock provider %s: %w", s.Provider, err)
}

func (s LockSystem) manager(ctx context.Context) (*locks.Manager, error) {
	provider, err := s.provider(ctx)
	if err != nil {
		return nil, err
	}
	options := wiring.LockOptions(s.Config.Locks)
	options.Provider, options.Node, options.Logger = provider, s.Config.Node.Name, s.Logger.With("component", "locks")
	return locks.Open(ctx, options)
}

func (s LockSystem) provider(ctx context.Context) (locks.Provider, error) {
	log := s.Logger.With("component", "locks")
	if s.Provider == config.DatabaseProvider {
		if err := statDatabase(s.Config); err != nil {
			return nil, err
		}
		return database.Open(ctx, s.Config.Database.URL.Reveal(), database.Options{Logger: log})
	}
	known := []string{config.DatabaseProvider}
	for _, p := range s.Config.Locks.Providers {
		if settings, ok := p.Settings.(lockkind.Settings); ok && p.ID == s.Provider {
			provider, err := settings.Open(lockkind.Options{Logger: log})
			if err != nil {
				return nil, s.named(wiring.Mistake(err))
			}
			return provider, nil
		}
		known = append(known, p.ID)
	}
	slices.Sort(known)
	return nil, &wiring.UnknownIDError{What: "lock provider", ID: s.Provider, Known: known}
}

// describeLocks says what the locks of the coordination database have, and those of each
// other provider by its id. It asks nobody.
func describeLocks(cfg *config.Config) (db string, others map[string]string) {
	for _, kind := range database.Kinds() {
		if strings.HasPrefix(cfg.Database.URL.Reveal(), kind.Name) {
			db = kind.String()
		}
	}
	others = make(map[string]string)
	for _, p := range cfg.Locks.Providers {
		if settings, ok := p.Settings.(lockkind.Settings); ok {
			others[p.ID] = settings.Capabilities().String()
		}
	}
	return db, others
}

func migrateLikeANode(ctx context.Context, cfg *config.Config, log *slog.Logger) (err error) {
	if !cfg.Database.AutoMigrate {
		return nil
	}
	op, err := NewOperator(OperatorOptions{Config: cfg, Logger: log, Create: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, op.Close()) }()
	return op.db.Migrate(ctx)
}
