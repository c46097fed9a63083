package lockdb

import (
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// dated is a lock as a holder that is not ours has it.
type dated struct {
	lockID
	client string
}

// tellFuture says once of each foreign holder that it has dated its row far in
// the future, where created is not empty: the instant in the row. Such a row is
// left alone, so that a person has to decide what becomes of it. A holder that
// works is met again and again; its client id is another after a restart.
func (db *DB) tellFuture(r lock.Request, client, created string, now time.Time) {
	if created == "" {
		return
	}
	if _, told := db.futures.LoadOrStore(dated{lockID{r.Key, r.Region}, client}, true); told {
		return
	}
	db.log.Warn("The row of a foreign holder lies in the future: if it is dead, its lock stands until then; 'observerd doctor' says what to do",
		"lock", r.Key, "region", r.Region, "name", r.Name, "client", client, "created", created, "now", now)
}
