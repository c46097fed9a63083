package app

import (
	"context"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/source/access"
	"github.com/observerd/observerd/internal/wiring"
)

func (a *App) definition(o config.Observer, src *access.Source) wiring.Definition {
	return wiring.Definition{Hash: wiring.DefinitionHash(o, src), Loaded: func() time.Time {
		if at := a.loaded.Load(); at != nil {
			return *at
		}
		return time.Time{}
	}}
}

// noteLoaded finds out when the configuration was loaded by the clock that all
// nodes share. It is done once: that of this host may be set, or stand still while
// the host sleeps.
func (a *App) noteLoaded(ctx context.Context) error {
	at, err := wiring.LoadedAt(ctx, a.db, a.cfg)
	if err == nil {
		a.loaded.Store(&at)
	}
	return err
}

// NoteReload notes for the audit table who has let the node reload its configuration, in
// which so many keys have changed.
func (a *App) NoteReload(ctx context.Context, actor string, changed int) error {
	return a.db.Operations().Note(ctx, lockdb.Did(lockdb.By{Actor: actor}, "reload", a.cfg.Node.Name, fmt.Sprintf("%d keys changed", changed)))
}
