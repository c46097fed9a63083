package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/internal/source/sqlite"
)

// foreign is what every kind of source offers. A new kind is one package and
// one line in openSource.
type foreign interface {
	observer.Source
	// Describe finds out what is wrong with a query before it is polled.
	Describe(ctx context.Context, q observer.Query) (source.Description, error)
	// SQL is the statement that a poll from that cursor sends.
	SQL(ctx context.Context, q observer.Query, from string) (string, error)
	Close() error
}

func openSource(name string, c config.Source) (foreign, error) {
	url := c.URL.Reveal()
	scheme, _, _ := strings.Cut(url, ":")
	switch scheme {
	case "sqlite":
		return sqlite.Open(sqlite.Options{
			URL: url, Location: c.Location(), PoolSize: c.PoolSize, QueryTimeout: c.QueryTimeout,
		})
	case "postgres", "postgresql":
		return postgres.Open(postgres.Options{
			URL: url, Name: name, Location: c.Location(), PoolSize: c.PoolSize, QueryTimeout: c.QueryTimeout,
		})
	}
	return nil, fmt.Errorf("sources.%s: unsupported URL", name)
}

// openSources opens the sources that some enabled observer reads.
func openSources(cfg *config.Config, c *cleanups) (map[string]foreign, error) {
	opened := map[string]foreign{}
	for _, o := range cfg.Observers {
		if !o.Enabled || opened[o.Source] != nil {
			continue
		}
		src, err := openSource(o.Source, cfg.Sources[o.Source])
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", o.Source, err)
		}
		c.close("source "+o.Source, src)
		opened[o.Source] = src
	}
	return opened, nil
}
