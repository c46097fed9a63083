package schedule

import (
	"log/slog"
	"sync"
)

// outageLog logs an outage of the coordination database once, however many loops
// notice it, and its end once. The zero value, with a logger, is ready.
type outageLog struct {
	log *slog.Logger

	mu      sync.Mutex
	waiting map[string]bool // the loops that wait for the database
}

func (o *outageLog) begin(loop string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		o.log.Warn("Coordination database cannot be used; waiting for it", "err", err)
		o.waiting = make(map[string]bool)
	}
	o.waiting[loop] = true
}

func (o *outageLog) end(loop string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.waiting[loop] {
		return
	}
	if delete(o.waiting, loop); len(o.waiting) == 0 {
		o.log.Info("Coordination database answers again")
	}
}

// lasts reports whether the loop still waits for the database.
func (o *outageLog) lasts(loop string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waiting[loop]
}
