package wiring

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

// Definition is what the events of an observer depend on in the configuration
// of this process, see [observer.Spec.Definition].
type Definition struct {
	Hash func(ctx context.Context, key []string) (string, error)
	// Loaded says when the configuration was loaded, see [LoadedAt]. It is nil for a
	// command beside nodes, which must not change the definition that they poll by.
	Loaded func() time.Time
}

// hashOf identifies an observer, its source first. The address of the source is left
// out: nodes may reach one database in different ways.
func hashOf(kind, database string, o config.Observer) string {
	q := Query(o)
	return hashed(4, o.Source, kind, database) + "/" +
		hashed(8, o.Table, o.Query, o.Key, o.Timestamp, o.Columns, o.Detect, o.Event, q.Redact, q.HashKey.Fingerprint())
}

// DefinitionHash returns what gives the hash of an observer of the source with a key, once
// the source has a URL.
func DefinitionHash(o config.Observer, src *access.Source) func(context.Context, []string) (string, error) {
	return func(ctx context.Context, key []string) (string, error) {
		o := o
		o.Key = key
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

// LoadedAt is when the configuration was loaded, by the clock that all nodes share.
func LoadedAt(ctx context.Context, db *lockdb.DB, cfg *config.Config) (time.Time, error) {
	now, err := db.Now(ctx)
	return now.Add(-time.Since(cfg.Loaded())), err
}
