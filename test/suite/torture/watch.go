package torture

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/observerd/observerd/test/kit/daemon"
)

// watch stays with a process until its end: it reads its metrics, wakes it when
// it fell asleep at a named step, and notes how it ended.
func (n *node) watch(ctx context.Context, p *daemon.Process, s Start) {
	began := time.Now()
	var sampling sync.WaitGroup
	sampling.Go(func() { n.sample(ctx, p) })
	if strings.Contains(s.Failpoints, "=stop") {
		sampling.Go(func() { n.wakeWhenAsleep(ctx, p, s) })
	}
	<-p.Exited()
	ended := time.Now()
	sampling.Wait()
	n.set(nil)
	how := "kill"
	if code := p.ExitCode(); code >= 0 {
		how = fmt.Sprintf("exit %d", code)
	}
	if step := killedAt(p.Log); step != "" {
		how = "kill at " + step
		n.cluster.faults.add(killAtStep, n.name, step, ended, ended.Add(time.Second), true)
	} else if !n.wasTold(p) && ctx.Err() == nil {
		n.cluster.faults.odd(fmt.Errorf("%s ended by itself: %s; its log ends with:\n%s", n.name, how, p.Log.Tail(2000)))
	}
	n.cluster.faults.life(n.name, began, ended, how)
}

// tell notes that the process is to end: it may do so now.
func (n *node) tell(p *daemon.Process) *daemon.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told = p
	return p
}

func (n *node) wasTold(p *daemon.Process) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.told == p
}

// killedAt is the step at which a process was to be killed, and was.
func killedAt(log *daemon.Log) (step string) {
	for line := range strings.Lines(log.Tail(4000)) {
		if rest, ok := strings.CutPrefix(line, "failpoint name="); ok && strings.Contains(line, "action=kill") {
			step, _, _ = strings.Cut(rest, " ")
		}
	}
	return step
}

// wakeWhenAsleep continues a process that a named step has stopped, when its
// lease has ended.
func (n *node) wakeWhenAsleep(ctx context.Context, p *daemon.Process, s Start) {
	step, _, _ := strings.Cut(s.Failpoints, "=")
	for every(ctx, p.Exited(), 100*time.Millisecond) {
		n.mu.Lock()
		ours := n.frozen == 0
		n.mu.Unlock()
		if !ours || !asleep(p.PID()) {
			continue
		}
		began := time.Now()
		least, _ := beyondTTL(n.cluster.options.TTL)
		wait := time.NewTimer(least)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-p.Exited():
		case <-ctx.Done():
		}
		_ = p.Signal(syscall.SIGCONT)
		n.cluster.faults.add(stopAtStep, n.name, step, began, time.Now(), true)
		return
	}
}

// sample reads the counters of a process every now and then, which die with it.
func (n *node) sample(ctx context.Context, p *daemon.Process) {
	for i := 0; every(ctx, p.Exited(), time.Second); i++ {
		if _, err := n.peek(ctx, p); err == nil { // One that is asleep or cut off has none to tell.
			n.read(ctx, p, pages[i%len(pages)])
		}
	}
	n.mu.Lock()
	last := n.last
	n.last = nil
	n.mu.Unlock()
	n.cluster.counters.add(last)
}

// peek reads the metrics of the present process, and keeps its counters.
func (n *node) peek(ctx context.Context, p *daemon.Process) (daemon.Metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	m, err := p.Metrics(ctx)
	if err != nil {
		return m, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == p {
		n.last = m.Counters
	}
	return m, nil
}

// grows waits until a counter of the process is above what it was.
func (n *node) grows(ctx context.Context, p *daemon.Process, counter string, was float64) bool {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if m, err := n.peek(ctx, p); err == nil && m.Sum(counter) > was {
			return true
		}
		if !every(ctx, p.Exited(), 50*time.Millisecond) {
			return false
		}
	}
	return false
}
