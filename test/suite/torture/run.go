package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/workload"
	"github.com/observerd/observerd/test/suite/torture/history"
)

// Outcome is what a run was.
type Outcome struct {
	History history.Run
	// Unhealed says what went wrong beside the history: something was not
	// delivered in time once all was healed, a node did not end in order, or one
	// ended by itself. Nil when all went well.
	Unhealed error
}

// Run makes a run, and leaves its plan, its logs and its history in the folder
// of the options. Nothing that it started is left running. An error is one of
// the harness: then there is no history.
func Run(ctx context.Context, o Options) (Outcome, error) {
	o = o.orDefaults()
	if err := o.check(); err != nil {
		return Outcome{}, err
	}
	plan, err := NewPlan(o)
	if err != nil {
		return Outcome{}, err
	}
	if err := errors.Join(makeFolder(o.Dir), savePlan(o, plan)); err != nil {
		return Outcome{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &cluster{options: o, plan: plan}
	out, err := c.run(ctx)
	cancel()
	return out, errors.Join(err, c.close())
}

// savePlan writes what a run is to do and to meet into its folder.
func savePlan(o Options, p Plan) error {
	text, err := json.MarshalIndent(struct {
		Options Options
		Plan    Plan
	}{o, p}, "", " ")
	if err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	if err := os.WriteFile(filepath.Join(o.Dir, "plan.json"), append(text, '\n'), 0o644); err != nil { //nolint:gosec // People read it.
		return fmt.Errorf("write the plan: %w", err)
	}
	return nil
}

func (c *cluster) run(ctx context.Context) (out Outcome, err error) {
	c.began = time.Now()
	if err := c.open(ctx); err != nil {
		return out, err
	}
	if err := c.start(ctx); err != nil {
		return out, err
	}
	if c.standby != nil {
		if err := c.standby.catchUp(ctx, c.coordination); err != nil {
			return out, err
		}
	}
	if c.writers, err = workload.Open(ctx, c.source.url(), uint64(c.options.Seed), c.options.shelves(), c.options.rest()); err != nil { //nolint:gosec // Any number is a seed.
		return out, err
	}
	c.progress("%d nodes are ready; %d faults in %s", len(c.nodes), len(c.plan.Faults), c.options.Duration)
	err = c.injectAll(ctx)
	written := c.writers.Close()
	if err != nil {
		return out, err
	}
	c.progress("healing; the writers have committed %d transactions, rolled back %d, and met %d errors",
		written.Committed, written.RolledBack, written.Failed)
	healed := c.heal(ctx)
	took, err := c.drain(ctx)
	c.progress("drained in %s: %v", took.Round(time.Millisecond), err)
	if err != nil && !errors.Is(err, errNotDrained) {
		return out, err
	}
	out.Unhealed = errors.Join(healed, err, c.programsGoOn(ctx), c.stop(ctx), errors.Join(c.faults.odds...))
	out.History, err = c.collect(ctx, took, out.Unhealed)
	return out, errors.Join(err, c.failure())
}

func (c *cluster) progress(format string, args ...any) {
	c.telling.Lock()
	defer c.telling.Unlock()
	c.options.Progress("%6.1fs  "+format, append([]any{time.Since(c.began).Seconds()}, args...)...)
}

// injectAll injects the faults of the plan, each in its time, and waits for
// all of them to end.
func (c *cluster) injectAll(ctx context.Context) error {
	began := time.Now()
	var injecting sync.WaitGroup
	for _, f := range c.plan.Faults {
		if !sleep(ctx, time.Until(began.Add(f.At))) || c.failure() != nil {
			break
		}
		injecting.Go(func() { c.inject(ctx, f) })
	}
	sleep(ctx, time.Until(began.Add(c.options.Duration)))
	injecting.Wait()
	return errors.Join(context.Cause(ctx), c.failure())
}

// tries is how often a fault strikes that finds nothing to bite: a node that is
// away, or one without a connection. One that has waited in vain for longer than
// triesTake, as for a poll, does not wait again.
const (
	tries     = 4
	triesTake = time.Minute
)

func (c *cluster) inject(ctx context.Context, f Planned) {
	all := kinds()
	k, _ := byName(all, f.Kind) // The plan has no other.
	begin := time.Now()
	bit, detail := k.inject(ctx, c, f)
	for try := 1; !bit && try < tries && time.Since(begin) < triesTake && sleep(ctx, time.Second); try++ {
		bit, detail = k.inject(ctx, c, f)
	}
	c.faults.add(f.Kind, f.Node, detail, begin, time.Now(), bit)
	c.progress("%-20s %-2s %5.1fs  bit: %-5t  %s", f.Kind, f.Node, time.Since(begin).Seconds(), bit, detail)
}

// heal undoes whatever may be left of faults: from here on everything is to go
// well.
func (c *cluster) heal(ctx context.Context) error {
	c.calm.Store(true)
	before := make(map[*node]*daemon.Process)
	for _, n := range c.nodes {
		p, ok := n.running(ctx)
		if !ok {
			continue
		}
		before[n] = p
		// Its failpoints go with the process.
		_ = n.terminate(ctx, p)
	}
	for _, n := range c.nodes {
		if !n.backWithin(ctx, before[n], calmLimit) {
			return fmt.Errorf("node %s is not ready again although all is healed", n.name)
		}
	}
	for _, stream := range streams {
		if err := c.operate(ctx, "observers", "resume", stream); err != nil {
			return err
		}
	}
	return nil
}

// stop ends the nodes for good. Each is to end in order.
func (c *cluster) stop(ctx context.Context) error {
	c.stopping.Store(true)
	// The last counters are read once a second.
	sleep(ctx, 1200*time.Millisecond)
	var errs []error
	for _, n := range slices.Concat(c.programs, c.nodes) {
		p, ok := n.running(ctx)
		if !ok {
			errs = append(errs, fmt.Errorf("%s has gone away", n.name))
			continue
		}
		stopping, cancel := context.WithTimeout(ctx, stopLimit)
		code, err := n.tell(p).Stop(stopping)
		cancel()
		if err == nil && code != 0 {
			err = fmt.Errorf("%s ended with %d; its log ends with:\n%s", n.name, code, p.Log.Tail(2000))
		}
		errs = append(errs, err)
	}
	c.living.Wait()
	return errors.Join(errs...)
}
