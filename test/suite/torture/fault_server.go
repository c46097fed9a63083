package torture

import (
	"context"
	"fmt"
	"time"

	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/workload"
)

// fast and crash are the ways in which a server ends.
func fast(ctx context.Context, s *server, _ int) (string, error) {
	return "fast", s.pg.Stop(ctx, pgtest.Fast)
}

func crash(ctx context.Context, s *server, number int) (string, error) {
	if number%2 == 0 {
		return "immediate", s.pg.Stop(ctx, pgtest.Immediate)
	}
	return "kill -9", s.pg.Kill(ctx)
}

// restartServer ends a server and starts it again.
func restartServer(where string, end func(context.Context, *server, int) (string, error)) inject {
	return func(ctx context.Context, c *cluster, f Planned) (bit bool, detail string) {
		s := c.coordination
		if where == atSource {
			s = c.source
		}
		if !s.busy.TryLock() {
			return false, "another fault has the server down"
		}
		defer s.busy.Unlock()
		// What was begun is ended, whatever becomes of ctx: the next steps need
		// the server.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), serverTimeout)
		defer cancel()
		detail, err := end(ctx, s, f.Number)
		if err != nil {
			c.fail(fmt.Errorf("end the %s server: %w", s.name, err))
			return false, detail
		}
		sleep(ctx, f.For)
		if err := s.pg.Start(ctx); err != nil {
			c.fail(fmt.Errorf("start the %s server again: %w", s.name, err))
			return false, detail
		}
		return true, detail
	}
}

// limitSessions ends half of the sessions of nodes and operators, and admits no
// new ones for a while. The standby then is the only server that takes some: it
// shows what was committed when the fault began, and goes on showing it after.
func limitSessions(ctx context.Context, c *cluster, f Planned) (bit bool, detail string) {
	s := c.coordination
	if !s.busy.TryLock() {
		return false, "another fault has the server down"
	}
	defer s.busy.Unlock()
	acting, cancel := context.WithTimeout(context.WithoutCancel(ctx), serverTimeout)
	defer cancel()
	if err := c.standby.catchUp(acting, s); err != nil {
		return false, err.Error()
	}
	before := c.standby.way.Stats().Connections
	limit := func(sessions int) string { return fmt.Sprintf("ALTER ROLE %s CONNECTION LIMIT %d", worker, sessions) }
	if err := s.execute(acting, limit(0), fmt.Sprintf(
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '%s' AND pid %% 2 = %d", worker, f.Number%2)); err != nil {
		c.fail(err)
	}
	sleep(ctx, f.For)
	if err := s.execute(acting, limit(-1)); err != nil {
		c.fail(err)
		return false, ""
	}
	came := c.standby.way.Stats().Connections - before
	return came > 0, fmt.Sprintf("%d sessions with the standby", came)
}

// pause lets an operator pause a stream, and let it go on.
func pause(ctx context.Context, c *cluster, f Planned) (bit bool, detail string) {
	if err := c.operate(ctx, "observers", "pause", f.Where); err != nil {
		return false, f.Where + ": the command failed"
	}
	sleep(ctx, f.For)
	// The database may be away. Faults that wait for a poll of the stream would wait in
	// vain if nobody tried again.
	for end := time.Now().Add(calmLimit); time.Now().Before(end) && ctx.Err() == nil; sleep(ctx, time.Second) {
		if err := c.operate(ctx, "observers", "resume", f.Where); err == nil {
			return true, f.Where
		}
	}
	return true, f.Where + ": not resumed"
}

// reset lets an operator set a stream back to the beginning of its source.
func reset(flags ...string) inject {
	return func(ctx context.Context, c *cluster, f Planned) (bit bool, detail string) {
		if err := c.operate(ctx, append([]string{"observers", "reset", f.Where, "--yes"}, flags...)...); err != nil {
			return false, f.Where + ": the command failed"
		}
		return true, f.Where
	}
}

// emptyTable deletes all rows of the stock. A poll is to refuse that; when it
// has, an operator accepts it, the rows go, and then they come back. It bites
// when all of that has happened within its time.
func emptyTable(ctx context.Context, c *cluster, f Planned) (bit bool, detail string) {
	first, enough := context.WithTimeout(ctx, turns*c.options.Interval)
	defer enough()
	if c.shows(first, "SELECT CASE WHEN live_count > 0 THEN 'some' ELSE '' END FROM obs_cursor WHERE stream = '"+workload.Stock+"'") == "" {
		return false, "no row was observed yet"
	}
	refill, err := c.writers.Empty(ctx)
	defer func() {
		if err := refill(); err != nil {
			c.fail(err)
		}
	}()
	if err != nil {
		return false, "the table could not be emptied"
	}
	// One poll refuses, one does what was accepted, and each may end early.
	ctx, cancel := context.WithTimeout(ctx, f.For+2*turns*c.options.Interval)
	defer cancel()
	const state = "SELECT CASE WHEN live_count = 0 THEN 'done' WHEN refusal <> '' AND accepted = '' THEN 'refused' ELSE '' END" +
		" FROM obs_cursor WHERE stream = '" + workload.Stock + "'"
	refused := 0
	for {
		switch c.shows(ctx, state) {
		case "":
			return false, fmt.Sprintf("it was refused %d times, and not done", refused)
		case "done": // Where another such fault came before, its acceptance may be left.
			return true, fmt.Sprintf("refused %d times", refused)
		}
		// The first refusal may be of a reading that met half of the rows before.
		refused++
		if err := c.operate(ctx, "observers", "accept", workload.Stock, "--yes"); err != nil {
			return false, "the command failed"
		}
	}
}

// shows waits until a statement shows something in the coordination database.
func (c *cluster) shows(ctx context.Context, statement string) string {
	for sleep(ctx, 100*time.Millisecond) {
		if value, err := c.shown(ctx, statement); err == nil && value != "" {
			return value
		}
	}
	return ""
}
