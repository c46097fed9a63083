package app

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Reloads remembers how the last reload of the configuration went, and the leftovers
// of nodes that did not stop in time. It outlives the successive nodes of one process:
// each of them shows it among its metrics, and counts as hanging while an earlier one
// does. Make one with [NewReloads]; it is safe for
// concurrent use.
type Reloads struct {
	mu     sync.Mutex
	code   int               // of the exit with which a start would have ended; 0 is a success
	loaded time.Time         // when the configuration that is at work was loaded
	left   []<-chan struct{} // each is closed when nothing of its node goes on
}

// NewReloads returns the state of a process that has loaded its configuration
// just now, with success, and has not reloaded yet.
func NewReloads() *Reloads { return &Reloads{loaded: time.Now()} }

// Set records how a reload has ended: the exit code that a start with that
// configuration would have, and when the configuration that is at work was loaded.
func (r *Reloads) Set(code int, loaded time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.code, r.loaded = code, loaded
}

// leave records that a node did not stop in time; gone is closed when it has.
func (r *Reloads) leave(gone <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = append(r.left, gone)
}

// leftovers reports whether something of a former node still goes on.
func (r *Reloads) leftovers() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = slices.DeleteFunc(r.left, closed)
	return len(r.left) > 0
}

func (r *Reloads) register(reg prometheus.Registerer) {
	gauge := func(name, help string, value func(code int, loaded time.Time) float64) {
		promauto.With(reg).NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			r.mu.Lock()
			defer r.mu.Unlock()
			return value(r.code, r.loaded)
		})
	}
	gauge("observerd_config_last_reload_success",
		"1 when the last reload of the configuration took effect, or there was none yet; 0 when the former configuration stays in use.",
		func(code int, _ time.Time) float64 {
			if code == 0 {
				return 1
			}
			return 0
		})
	gauge("observerd_config_last_reload_exit_code",
		"0 when the last reload of the configuration took effect, or there was none yet; else the exit code with which a start would have ended.",
		func(code int, _ time.Time) float64 { return float64(code) })
	gauge("observerd_config_last_reload_timestamp_seconds",
		"When the configuration that is at work was loaded: at the start, or by the last reload that took effect.",
		func(_ int, loaded time.Time) float64 { return float64(loaded.UnixMilli()) / 1000 })
}
