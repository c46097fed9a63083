package cluster_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/springtest"
)

// witnesses make the source notice polls of one type that overlap: each read of
// one of these views holds a lock for as long as it lasts, and fails if another
// has it. That needs nobody's clock.
const witnesses = `
	CREATE FUNCTION alone(what INTEGER) RETURNS BOOLEAN LANGUAGE plpgsql VOLATILE AS $$
	BEGIN
	  IF NOT pg_try_advisory_xact_lock(4711, what) THEN
	    RAISE EXCEPTION 'polls overlap';
	  END IF;
	  RETURN TRUE;
	END $$;
	CREATE VIEW watched_orders AS SELECT o.* FROM (SELECT alone(1) AS yes OFFSET 0) w JOIN orders o ON w.yes;
	CREATE VIEW watched_tasks  AS SELECT o.* FROM (SELECT alone(2) AS yes OFFSET 0) w JOIN tasks  o ON w.yes;
	CREATE VIEW watched_stock  AS SELECT o.* FROM (SELECT alone(3) AS yes OFFSET 0) w JOIN stock  o ON w.yes`

// watched are the views by the type that polls them.
var watched = map[string]string{"order": "watched_orders", "wes": "watched_tasks", "inventory": "watched_stock"}

// java is a node of the old system: a scheduler for each type that takes the
// lock of Spring's registry, polls, gives it back and waits for its delay.
type java struct {
	repository *springtest.Repository
	stop       context.CancelFunc
	work       sync.WaitGroup

	mu    sync.Mutex
	polls map[string][]time.Time // the ends of its polls
}

// javaTTL is the TTL of all nodes, old and new. It is long, so that no lock is
// lost on a machine that is busy: that lets polls overlap by right.
const javaTTL = time.Minute

// startJava starts a node of the old system, until the test ends.
func startJava(t *testing.T, g springtest.Generation, m memory, s postgresMarket) *java {
	t.Helper()
	repository, err := springtest.NewRepository(springtest.Options{URL: m.url, Generation: g, TTL: javaTTL, Connections: 4})
	if err != nil {
		t.Fatal(err)
	}
	if err := repository.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	j := &java{repository: repository, polls: map[string][]time.Time{}}
	registry := springtest.NewRegistry(repository)
	ctx, cancel := context.WithCancel(t.Context())
	j.stop = cancel
	for typ := range watched {
		j.work.Go(func() {
			if err := j.schedule(ctx, registry, s.db, typ); err != nil && ctx.Err() == nil {
				t.Errorf("java polls %s: %v", typ, err)
			}
		})
	}
	t.Cleanup(func() { j.retire(t) })
	return j
}

// schedule polls a type until ctx ends, with the delay between the end of a
// poll and the start of the next. What has begun is not given up: a COMMIT whose
// client has gone, or a read, would go on behind the back of the others.
func (j *java) schedule(ctx context.Context, registry *springtest.Registry, source *sql.DB, typ string) error {
	whole := context.WithoutCancel(ctx)
	for ctx.Err() == nil {
		name := typ + "-observer-poll"
		locked, err := registry.TryLock(whole, name, time.Second)
		if err != nil {
			return err
		}
		if locked {
			err = errors.Join(j.poll(whole, source, typ), registry.Unlock(whole, name))
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
	return nil
}

// poll reads a view and takes its time for what it found.
func (j *java) poll(ctx context.Context, source *sql.DB, typ string) error {
	tx, err := source.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var rows int
	if err := tx.QueryRowContext(ctx, `SELECT count(*), pg_sleep(0.1) FROM `+watched[typ]).Scan(&rows, new(sql.NullString)); err != nil {
		return fmt.Errorf("read %s: %w", watched[typ], err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.polls[typ] = append(j.polls[typ], time.Now())
	return tx.Commit()
}

// ends are the ends of the node's polls of a type so far.
func (j *java) ends(typ string) []time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]time.Time(nil), j.polls[typ]...)
}

// retire stops the node as its own shutdown does. A second call does nothing.
func (j *java) retire(t *testing.T) {
	t.Helper()
	j.stop()
	j.work.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if err := j.repository.Close(ctx); err != nil && !errors.Is(err, sql.ErrConnDone) && ctx.Err() == nil && t.Context().Err() == nil {
		t.Errorf("close the lock repository: %v", err)
	}
	_ = j.repository.Disconnect()
}
