// Package wiring is what a node and the commands have in common: it makes sources,
// pollers and lock requests of the configuration, says what kind of fault an error is,
// and lists the kinds of sources, of sinks and of lock providers that the program has.
package wiring

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/config/dburl"
	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lock/githublock"
	"github.com/observerd/observerd/internal/lock/kubelease"
	"github.com/observerd/observerd/internal/lock/lockkind"
	"github.com/observerd/observerd/internal/lock/redislock"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/file"
	"github.com/observerd/observerd/internal/sink/kafka"
	"github.com/observerd/observerd/internal/sink/sqlsink"
	"github.com/observerd/observerd/internal/sink/stdout"
	"github.com/observerd/observerd/internal/sink/webhook"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/access"
	"github.com/observerd/observerd/internal/source/mysql"
	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/internal/source/sqlite"
	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/database"
)

// sources are the kinds of databases that observers read, in the order in which
// messages name them. CONTRIBUTING.md says how another is added.
var sources = []source.Kind{
	sqlite.Kind,
	postgres.Kind,
	oracle.Kind,
	mysql.MySQL,
	mysql.MariaDB,
}

// sinks are the kinds of sinks, in the order in which messages name them.
var sinks = []kind.Kind[sink.Settings]{
	stdout.Kind,
	file.Kind,
	sqlsink.Kind,
	webhook.Kind,
	kafka.Kind,
}

// lockProviders are the kinds of lock providers beside the coordination database, in the
// order in which messages name them.
var lockProviders = []lockkind.Kind{redislock.Kind, kubelease.Kind, githublock.Kind}

// LockKinds returns what the locks of each kind of provider have, for people: none is
// opened. Those of the coordination database come first.
func LockKinds() []locks.Capabilities {
	others := fn.Each(lockProviders, func(k lockkind.Kind) locks.Capabilities { return k.Settings().Capabilities() })
	return append(database.Kinds(), others...)
}

// Kinds returns what the configuration has to know of each kind.
func Kinds() config.Kinds {
	var kinds config.Kinds
	for _, k := range sources {
		if k.Example == "" {
			continue // A file, as the coordination database may be: the configuration knows it.
		}
		kinds.Servers = append(kinds.Servers, dburl.Kind{
			Scheme: k.Scheme, Aliases: k.Aliases, Example: k.Example, Harmless: k.Harmless, Account: k.Account,
			LooseNames: k.LooseNames, HasDefaults: k.HasDefaults, Fetches: k.Fetches,
		})
	}
	kinds.Sinks, kinds.LockProviders = kind.Any(sinks), kind.Any(lockProviders)
	kinds.CheckLocks = lockMistakes
	return kinds
}

// OpenSource opens a source of the kind that the scheme names. It does not connect. The
// error is of the URL, or of the files that it names.
func OpenSource(scheme string, o source.Options) (source.Database, error) {
	kind, ok := fn.Find(sources, func(k source.Kind) bool { return k.Scheme == scheme })
	if !ok {
		return nil, fmt.Errorf("this binary cannot read %s", scheme)
	}
	return kind.Open(o)
}

// NewOpener returns what opens the sources of the configuration, which says what o.Node
// and o.Find are.
func NewOpener(cfg *config.Config, o access.Options) *access.Opener {
	o.Node = cfg.Node.Name
	o.Find = func(name string) (access.Target, error) {
		c, err := cfg.Sources[name].Resolve()
		if err != nil {
			return access.Target{}, unopenedError{mistakeError{err}}
		}
		account, secret := c.URL.Account()
		return access.Target{
			Kind: string(c.URL.Dialect()), Database: c.URL.Database(), Account: account, Secret: secret.Reveal(),
			Open: func(gate source.Gate) (source.Database, error) {
				src, err := OpenSource(string(c.URL.Dialect()), source.Options{
					URL: c.URL.Reveal(), Name: name, Node: cfg.Node.Name, Location: c.Location(), PoolSize: c.PoolSize, FetchSize: c.FetchSize,
					QueryTimeout: c.QueryTimeout, Gate: gate,
				})
				if err != nil {
					return nil, unopenedError{mistakeError{err}}
				}
				return src, nil
			},
		}, nil
	}
	return access.NewOpener(o)
}

// unopenedError is why a source cannot be opened: its URL is wrong, in a way that only
// the source can see, or a file is missing, which may be there later.
type unopenedError struct{ mistakeError }

// Is makes errors.Is true for [ErrMistake], and where a file is missing for
// [access.ErrMissingFile].
func (e unopenedError) Is(target error) bool {
	if target == access.ErrMissingFile {
		return errors.Is(e.error, config.ErrUnread) || errors.As(e.error, new(*fs.PathError))
	}
	return e.mistakeError.Is(target)
}
