package app

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/access"
	"github.com/observerd/observerd/internal/wiring"
)

// newOpener returns what opens the sources of the configuration. accounts is nil where
// there is no coordination database yet; lenient is for the one-shot commands.
func newOpener(cfg *config.Config, accounts access.Accounts, lenient bool, log *slog.Logger) *access.Opener {
	find := func(name string) (access.Target, error) {
		c, err := cfg.Sources[name].Resolve()
		if err != nil {
			return access.Target{}, unopenedError{err}
		}
		account, secret := c.URL.Account()
		return access.Target{
			Kind: string(c.URL.Dialect()), Database: c.URL.Database(), Account: account, Secret: secret.Reveal(),
			Open: func(gate source.Gate) (source.Database, error) {
				src, err := wiring.OpenSource(string(c.URL.Dialect()), source.Options{
					URL: c.URL.Reveal(), Name: name, Node: cfg.Node.Name, Location: c.Location(), PoolSize: c.PoolSize, FetchSize: c.FetchSize,
					QueryTimeout: c.QueryTimeout, Gate: gate,
				})
				if err != nil {
					return nil, unopenedError{err}
				}
				return src, nil
			},
		}, nil
	}
	return access.NewOpener(access.Options{Node: cfg.Node.Name, Find: find, Accounts: accounts, Lenient: lenient, Logger: log})
}

// unopenedError is why a source cannot be opened: its URL is wrong, in a way that only
// the source can see, or a file is missing, which may be there later.
type unopenedError struct{ error }

// Is makes errors.Is true for errMistake, and where a file is missing for
// [access.ErrMissingFile].
func (e unopenedError) Is(target error) bool {
	if target == access.ErrMissingFile {
		var file *fs.PathError
		return errors.Is(e.error, config.ErrUnread) || errors.As(e.error, &file)
	}
	return target == errMistake
}

// Unwrap returns the error itself.
func (e unopenedError) Unwrap() error { return e.error }

// openSources opens the sources that some enabled observer reads, each behind
// the breaker of its database.
func openSources(cfg *config.Config, o *access.Opener, m *access.Metrics, c *cleanups) (map[string]*access.Source, error) {
	opened := map[string]*access.Source{}
	for _, observed := range cfg.Observers {
		name := observed.Source
		if !observed.Enabled || opened[name] != nil {
			continue
		}
		src, err := o.OpenForPolls(name, cfg.Sources[name].PoolSize, m)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", name, err)
		}
		c.close("source "+name, src)
		opened[name] = src
	}
	return opened, nil
}
