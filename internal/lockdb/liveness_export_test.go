package lockdb

import (
	"context"

	"github.com/observerd/observerd/internal/lockdb/liveness"
)

// ShareASession lets the liveness find out that two connections are served by
// one session, as a pooler in transaction mode does it: at once, or later, when
// a look meets a session that does not hold the advisory lock.
func (db *DB) ShareASession(later bool) {
	p := db.presence.(*liveness.SessionPresence)
	if !later {
		p.PIDOfOther = func(context.Context) (string, error) { return p.PID, nil }
		return
	}
	asked := p.PIDOfOther
	p.PIDOfOther = func(ctx context.Context) (string, error) {
		other, err := asked(ctx)
		p.PID += "0" // what the next looks see is another's
		return other, err
	}
}
