package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/source/access"
)

// definition is what the events of an observer depend on in the configuration
// of this process, see [observer.Spec.Definition].
type definition struct {
	hash func(context.Context) (string, error)
	// loaded is nil for a command beside nodes: it must not change what they poll by.
	loaded func() time.Time
}

// hashOf identifies an observer, its source first. The address of the source is left
// out: nodes may reach one database in different ways.
func hashOf(kind, database string, o config.Observer) string {
	return hashed(4, o.Source, kind, database) + "/" +
		hashed(8, o.Table, o.Query, o.Key, o.Timestamp, o.Columns, o.Detect, o.Event)
}

// identified returns what gives the hash of an observer of the source, once that
// has a URL.
func identified(o config.Observer, src *access.Source) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		target, err := src.Target(ctx)
		if err != nil {
			return "", err
		}
		return hashOf(target.Kind, target.Database, o), nil
	}
}

func hashed(size int, parts ...any) string {
	text, err := json.Marshal(parts)
	if err != nil {
		panic(err) // Strings always encode.
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:size])
}

func (a *App) definition(o config.Observer, src *access.Source) definition {
	return definition{hash: identified(o, src), loaded: func() time.Time {
		if at := a.loaded.Load(); at != nil {
			return *at
		}
		return time.Time{}
	}}
}

// definition is that of a command, which may set another only where no node is at
// work.
func (op *Operator) definition(ctx context.Context, o config.Observer, src *access.Source) (definition, error) {
	d := definition{hash: identified(o, src)}
	nodes, err := op.db.Nodes().Nodes(ctx, time.Minute)
	if err != nil || len(nodes) > 0 {
		return d, err
	}
	at, err := loadedAt(ctx, op.db, op.cfg)
	d.loaded = func() time.Time { return at }
	return d, err
}

// noteLoaded finds out when the configuration was loaded by the clock that all
// nodes share. It is done once: that of this host may be set, or stand still while
// the host sleeps.
func (a *App) noteLoaded(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, longestTry)
	defer cancel()
	at, err := loadedAt(ctx, a.db, a.cfg)
	if err == nil {
		a.loaded.Store(&at)
	}
	return err
}

func loadedAt(ctx context.Context, db *lockdb.DB, cfg *config.Config) (time.Time, error) {
	now, err := db.Now(ctx)
	return now.Add(-time.Since(cfg.Loaded())), err
}
