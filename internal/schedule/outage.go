package schedule

import (
	"log/slog"
	"sync"
)

// outage tells of a database that is away once, however many loops notice, and
// once of its return. The zero value, with a logger, is ready.
type outage struct {
	log *slog.Logger

	mu   sync.Mutex
	away map[string]bool // the loops that wait
}

func (o *outage) failed(loop string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.away) == 0 {
		o.log.Warn("Coordination database does not answer; waiting for it", "err", err)
		o.away = make(map[string]bool)
	}
	o.away[loop] = true
}

func (o *outage) passed(loop string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.away[loop] {
		return
	}
	if delete(o.away, loop); len(o.away) == 0 {
		o.log.Info("Coordination database answers again")
	}
}
