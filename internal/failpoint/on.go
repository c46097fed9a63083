//go:build failpoints

package failpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Enabled reports whether the build has failpoints.
const Enabled = true

// environment is read once: the rules do not change during a run.
var environment = sync.OnceValues(func() (*points, error) {
	rules, err := parse(os.Getenv(Variable))
	offset, clockErr := parseOffset(os.Getenv(ClockVariable))
	p := &points{rules: rules, offset: offset, hits: make(map[string]int64), out: os.Stderr}
	return p, errors.Join(err, clockErr)
})

// points are the rules of the process and how often each point was passed.
type points struct {
	rules  []rule
	offset time.Duration
	out    io.Writer

	mu   sync.Mutex
	hits map[string]int64
}

// Knows reports whether a variable of the environment is one of this package's.
func Knows(variable string) bool { return variable == Variable || variable == ClockVariable }

// Check reports an environment that names a point or an action which does not
// exist. It is called once, at the start.
func Check() error {
	_, err := environment()
	return err
}

// Hit applies the rules of the named step, which the node has reached.
func Hit(name string) {
	p, _ := environment() // Check has returned the error.
	hit := p.count(name)
	for _, r := range p.rules {
		if r.applies(name, hit) {
			fmt.Fprintf(p.out, "failpoint name=%s hit=%d action=%s\n", name, hit, r.action)
			r.act()
		}
	}
}

func (p *points) count(name string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hits[name]++
	return p.hits[name]
}

func (r rule) act() {
	switch r.action {
	case "kill":
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		select {} // The signal may reach another thread first.
	case "stop":
		stop()
	case "sleep":
		<-time.After(r.pause())
	case "panic":
		panic("failpoint " + r.name)
	case "exit":
		os.Exit(1) //nolint:forbidigo // The rule asks for an end without cleanup.
	}
}

// stop returns when the process was stopped and continued. Any thread may
// receive SIGSTOP, and this one may run on for a moment; so it waits for the SIGCONT.
func stop() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
	<-continued
}

// ClockOffset is by how much the node's clock is set wrong.
func ClockOffset() time.Duration {
	p, _ := environment()
	return p.offset
}

// Now is the time of day on the shifted clock. It has no monotonic reading.
func Now() time.Time { return time.Now().Round(0).Add(ClockOffset()) }
