package simtest

import (
	"context"
	"errors"
	"sync"
	"time"
)

var (
	// ErrFault is the error of a call that something befell.
	ErrFault = errors.New("connection reset")
	// ErrDead is the error of a call of a process that was killed.
	ErrDead = errors.New("process was killed")
)

// Wire is what lies between one process and the world: each call of the
// process passes through it. It is safe for concurrent use.
type Wire struct {
	name    string
	journal *Journal
	seed    uint64

	mu      sync.Mutex
	calls   map[string]uint64
	armed   map[string][]Fault
	cut     bool
	dead    bool
	awake   chan struct{} // closed while the process runs
	active  map[string]int
	biting  map[string]int // of the active
	bites   map[string]Bites
	endless string
	orphans sync.WaitGroup
	die     context.CancelFunc
	life    context.Context
}

// NewWire returns a wire without faults, whose calls are noted under the name.
// They have latencies of their own, below five milliseconds, that the seed
// decides.
func NewWire(name string, seed uint64, journal *Journal) *Wire {
	w := &Wire{
		name: name, seed: seed, journal: journal, armed: make(map[string][]Fault), awake: make(chan struct{}),
		calls: make(map[string]uint64), active: make(map[string]int), biting: make(map[string]int), bites: make(map[string]Bites),
	}
	w.life, w.die = context.WithCancel(context.Background())
	close(w.awake)
	return w
}

// Arm lets the faults befall the next calls of that name, one after the other;
// the last of them is repeated that many times in all.
func (w *Wire) Arm(call string, times int, faults ...Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed[call] = append(w.armed[call], faults...)
	for range times - 1 {
		w.armed[call] = append(w.armed[call], faults[len(faults)-1])
	}
}

// Cut cuts the process off: its calls are refused until [Wire.Heal].
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
}

// Heal connects the process again, and disarms what was armed.
func (w *Wire) Heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
	clear(w.armed)
}

// Endless returns the name of a call that came without a deadline; empty if
// none did. Every outside call must have one.
func (w *Wire) Endless() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.endless
}

// Settle waits for what was orphaned. It is called at the end of a history,
// after the process has ended.
func (w *Wire) Settle() {
	w.orphans.Wait()
	w.die()
}

// begin notes a call and returns what befalls it, and its latency. end is to
// be called when it is answered.
func (w *Wire) begin(ctx context.Context, call, what string) (f Fault, latency time.Duration, end func(error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := ctx.Deadline(); !ok && w.endless == "" {
		w.endless = call
	}
	latency = w.latency(call, what)
	w.active[call]++
	bitten := w.cut
	if armed := w.armed[call]; len(armed) > 0 && !w.cut {
		f, w.armed[call] = armed[0], armed[1:]
		bitten = true
	}
	if w.cut {
		f.Kind = Refused
	}
	if bitten {
		w.bite(call)
		w.biting[call]++
	}
	return f, latency, func(err error) {
		w.journal.note(w.name, call+" "+what, f, err)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.active[call]--
		if bitten {
			w.bite(call)
			w.biting[call]--
		}
	}
}

// latency is that of the next call. It depends on how many there were of this
// kind, and so not on which of two came first at one instant.
func (w *Wire) latency(call, what string) time.Duration {
	kind := call + " " + what
	w.calls[kind]++
	x := w.seed<<32 + w.calls[kind]
	for _, c := range []byte(kind) {
		x = mix(x + uint64(c))
	}
	return time.Duration(x % uint64(5*time.Millisecond))
}

// mix scatters a counter (splitmix64).
func mix(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
