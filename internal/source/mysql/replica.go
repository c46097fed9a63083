package mysql

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// replicaStatements ask for the state of replication, the newest words first.
var replicaStatements = map[bool][]string{
	true:  {"SHOW ALL REPLICAS STATUS", "SHOW ALL SLAVES STATUS"}, // MariaDB
	false: {"SHOW REPLICA STATUS", "SHOW SLAVE STATUS"},
}

// replication finds out whether this server repeats what another has written,
// and how long after it. A server that is read-only, or that shows the threads
// of replication to an account that may not ask for its state, is a replica
// that does not say how far it is behind.
func (c *session) replication(ctx context.Context, a *activity, readOnly bool) error {
	a.replica = a.replica || readOnly
	for _, sql := range replicaStatements[c.conn.mariadb] {
		r, err := c.query(ctx, "read the state of replication", sql)
		switch codeOf(err) {
		case "":
			if err == nil {
				a.follow(delay(r))
			}
			return err
		case "1064", "1149": // words of another version
			continue
		}
		break // no right to ask
	}
	if a.replica {
		a.fallBack("This is a replica, or read-only, and how far it is behind is hidden: the horizon is the clock less the overlap, which has to be longer than the greatest delay. GRANT SLAVE MONITOR (MariaDB) or REPLICATION CLIENT (MySQL) ON *.* to the account that reads.")
	}
	return nil
}

// follow takes the delay of a replica into account.
func (a *activity) follow(replica bool, behind time.Duration) {
	a.replica = a.replica || replica
	switch {
	case behind < 0:
		a.hold("This is a replica that has stopped; the low-water mark does not move until it resumes.")
		a.inexact = true
	case a.replica:
		a.behind = behind
		a.fallBack("This is a replica, which does not know the open transactions of its primary: the horizon is the clock less its delay and the overlap.")
	}
}

// delay is the greatest of all channels; negative where one has stopped.
func delay(r result) (replica bool, behind time.Duration) {
	for _, row := range r.rows {
		replica = true
		for i, name := range r.columns {
			if !strings.EqualFold(name, "Seconds_Behind_Source") && !strings.EqualFold(name, "Seconds_Behind_Master") {
				continue
			}
			seconds, err := strconv.ParseInt(string(row[i]), 10, 64)
			if err != nil || behind < 0 {
				behind = -1
				continue
			}
			behind = max(behind, time.Duration(seconds)*time.Second)
		}
	}
	return replica, behind
}
