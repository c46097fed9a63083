package torture

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/observerd/observerd/test/kit/daemon"
)

// HolderPackage is the command that is the program of [Options.Holder].
const HolderPackage = "github.com/observerd/observerd/test/suite/torture/cmd/holder"

// programTTLs are those of the locks of the programs. The longest is renewed so seldom that a
// lease is older then than the shortest lasts; with SQLite none is shorter than 15 s.
func (o Options) programTTLs() []time.Duration {
	if o.Coordination == SQLite {
		return []time.Duration{15 * time.Second, 15 * time.Second, 20 * time.Second}
	}
	return []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second}
}

func programName(n int) string { return fmt.Sprintf("p%d", n+1) }

func (c *cluster) programNames() (names []string) {
	for _, n := range c.programs {
		names = append(names, n.name)
	}
	return names
}

// openPrograms makes the ways of the programs to the coordination server.
func (c *cluster) openPrograms(ctx context.Context) error {
	if c.options.Holder == "" {
		return nil
	}
	for i, ttl := range c.options.programTTLs() {
		n := &node{cluster: c, name: programName(i), folder: filepath.Join(c.options.Dir, programName(i)), changed: make(chan struct{})}
		if err := os.Mkdir(n.folder, 0o755); err != nil { //nolint:gosec // People read it.
			return fmt.Errorf("make the folder of a program: %w", err)
		}
		address, direct := "", ""
		if c.coordination != nil {
			direct = c.coordination.address()
			var err error
			if n.coordination, err = openGate(ctx, c.coordination.address()); err != nil {
				return err
			}
			address = n.coordination.Addr()
		}
		c.programs = append(c.programs, n)
		database, err := c.database(address, n.name)
		if err != nil {
			return err
		}
		unguarded, err := c.database(direct, n.name)
		if err != nil {
			return err
		}
		n.env = []string{"HOLDER_DATABASE=" + database, "HOLDER_UNGUARDED=" + unguarded, "HOLDER_NODE=" + n.name, "HOLDER_TTL=" + ttl.String()}
	}
	return nil
}

// hold keeps a program running that holds general locks, until ctx ends, or the cluster
// stops.
func (n *node) hold(ctx context.Context) {
	c := n.cluster
	for starts := 1; !c.stopping.Load() && ctx.Err() == nil; starts++ {
		began := time.Now()
		log := filepath.Join(n.folder, fmt.Sprintf("%s-%03d.log", n.name, starts))
		p, err := daemon.Start(ctx, daemon.Options{Binary: c.options.Holder, Name: n.name, Folder: n.folder, Args: []string{}, Env: n.env, LogFile: log})
		if err != nil {
			c.fail(err)
			return
		}
		n.set(p)
		<-p.Exited()
		n.set(nil)
		how := fmt.Sprintf("exit %d", p.ExitCode())
		if !n.wasTold(p) && ctx.Err() == nil {
			c.faults.odd(fmt.Errorf("%s ended by itself: %s; its log ends with:\n%s", n.name, how, p.Log.Tail(2000)))
		}
		c.faults.life(n.name, began, time.Now(), how)
		sleep(ctx, 500*time.Millisecond)
	}
}

// killProgram ends a program at once.
func killProgram(ctx context.Context, n *node, p *daemon.Process, _ Planned) (bit bool, detail string) {
	n.tell(p).Kill()
	n.next(ctx, p, faultyLimit)
	return p.ExitCode() == -1, ""
}

// goneOn is how many keys were written since a row by one who had them alone, and how many
// programs have written.
const goneOn = `
SELECT count(DISTINCT key) FILTER (WHERE mode = 'exclusive'), count(DISTINCT node) FROM {guarded} WHERE id > $1 AND kind = 'write'`

// programsGoOn waits until each key was written under an exclusive lock, and each program has
// written, once all is healed: nobody keeps others out who is gone.
func (c *cluster) programsGoOn(ctx context.Context) error {
	if len(c.programs) == 0 {
		return nil
	}
	table := c.ledger.Table("guarded")
	var healed int64
	if err := c.ledger.QueryRowContext(ctx, `SELECT coalesce(max(id), 0) FROM `+table).Scan(&healed); err != nil {
		return fmt.Errorf("watch the programs: %w", err)
	}
	const keys = 4 // of two schemas, a fileset and a page
	for began := time.Now(); ; {
		var written, writers int
		if err := c.ledger.QueryRowContext(ctx, strings.Replace(goneOn, "{guarded}", table, 1), healed).Scan(&written, &writers); err != nil {
			return fmt.Errorf("watch the programs: %w", err)
		}
		if written == keys && writers == len(c.programs) {
			return nil
		}
		if time.Since(began) > c.options.Drain {
			return fmt.Errorf("%d of %d programs have written since all is healed, %s ago, and %d of %d locks were held alone",
				writers, len(c.programs), c.options.Drain, written, keys)
		}
		if !sleep(ctx, 300*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}
