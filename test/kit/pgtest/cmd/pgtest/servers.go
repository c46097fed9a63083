package main

import (
	"context"
	"errors"
	"sync"

	"github.com/observerd/observerd/test/kit/bouncertest"
	"github.com/observerd/observerd/test/kit/browsertest"
	"github.com/observerd/observerd/test/kit/mariatest"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/redistest"
)

// servers run beside the command; nil where one could not be started.
type servers struct {
	postgres *pgtest.Server
	mariadb  *mariatest.Server
}

// start starts the servers side by side, below the folder if one is named. The
// caller closes them also after an error, since one of them may run.
func start(ctx context.Context, folder string) (servers, error) {
	var s servers
	var failed, failedToo error
	var wait sync.WaitGroup
	wait.Go(func() { s.postgres, failed = pgtest.Open(ctx, pgtest.Options{Dir: folder}) })
	wait.Go(func() { s.mariadb, failedToo = mariatest.Open(ctx, mariatest.Options{Dir: folder}) })
	wait.Wait()
	return s, errors.Join(failed, failedToo)
}

// environ is what the command is told of them.
func (s servers) environ() []string {
	return []string{
		pgtest.EnvURL + "=" + s.postgres.URL("postgres"),
		mariatest.EnvURL + "=" + s.mariadb.URL(""),
	}
}

// close stops those that run.
func (s servers) close() error {
	var err error
	if s.postgres != nil {
		err = s.postgres.Close()
	}
	if s.mariadb != nil {
		err = errors.Join(err, s.mariadb.Close())
	}
	return err
}

// sweep removes what tests that have ended, or were interrupted, have left of their own
// servers.
func sweep() {
	pgtest.Sweep()
	mariatest.Sweep()
	browsertest.Sweep()
	bouncertest.Sweep()
	redistest.Sweep()
}
