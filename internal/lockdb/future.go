package lockdb

import (
	"log/slog"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/liveness"
)

// futures tells of foreign holders that have dated their rows in the future.
type futures struct {
	log  *slog.Logger
	told sync.Map
}

// dated is a lock as a holder that is not ours has it.
type dated struct {
	liveness.LockID
	client string
}

// tell logs once for each foreign holder that it has dated its row far in the
// future, where created, the time in the row, is not empty. Such a row is left
// alone: a person has to decide about it. A holder that works is met again and
// again; its client id is another after a restart.
func (f *futures) tell(r lock.Request, client, created string, now time.Time) {
	if created == "" {
		return
	}
	if _, told := f.told.LoadOrStore(dated{liveness.LockID{Key: r.Key, Region: r.Region}, client}, true); told {
		return
	}
	f.log.Warn("The row of a foreign holder lies in the future: if it is dead, its lock stands until then; 'observerd doctor' says what to do",
		"lock", r.Key, "region", r.Region, "name", r.Name, "client", client, "created", created, "now", now)
}
