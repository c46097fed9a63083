package wiring

import (
	"errors"
	"io/fs"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/access"
)

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
		var file *fs.PathError
		return errors.Is(e.error, config.ErrUnread) || errors.As(e.error, &file)
	}
	return e.mistakeError.Is(target)
}
