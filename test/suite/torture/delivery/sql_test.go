//go:build nightly

package delivery

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// database is a target of type sql. psql is its consumer.
type database struct {
	pg   *pgtest.Server
	psql string
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Fatal(err)
	}
	d := &database{pgtest.Start(t, pgtest.Options{}), psql}
	if err := pgtest.Execute(t.Context(), d.pg.URL("postgres"), "CREATE DATABASE inbox"); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *database) ways(t *testing.T, n int) (all []*netfault.Proxy) {
	t.Helper()
	for range n {
		all = append(all, netfault.Start(t, fmt.Sprintf("127.0.0.1:%d", d.pg.Port())))
	}
	return all
}

func (*database) entry(way *netfault.Proxy) string {
	return fmt.Sprintf("{id: %s, type: sql, url: %q, create: true, batch-size: 50}", sinkID, "postgres://postgres@"+way.Addr()+"/inbox?sslmode=disable")
}

func (*database) carries(piece []byte) bool { return strings.Contains(string(piece), "Event") }

func (d *database) kill(ctx context.Context) error  { return d.pg.Kill(ctx) }
func (d *database) start(ctx context.Context) error { return d.pg.Start(ctx) }

func (d *database) consumed(ctx context.Context) (all []seen, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.psql, "-XAt", "-F", " ", d.pg.URL("inbox"), "-c", "SELECT stream, seq, event_id, subject FROM obs_feed_event ORDER BY id")
	output, err := cmd.Output()
	for line := range strings.Lines(string(output)) {
		var e seen
		_, wrong := fmt.Sscan(line, &e.stream, &e.seq, &e.id, &e.key)
		err = errors.Join(err, wrong)
		all = append(all, e)
	}
	return all, err
}

func (d *database) backUp(ctx context.Context) error {
	return copyDatabase(ctx, d.pg, "backup", "inbox")
}
func (d *database) restore(ctx context.Context) error {
	return copyDatabase(ctx, d.pg, "inbox", "backup")
}

func TestSQLUnderAllFaults(t *testing.T) { story(t, newDatabase(t), byStream, onceByID) }
