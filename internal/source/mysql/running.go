package mysql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

// processSQL is run first, and the clock is that of its beginning: a statement
// that it does not see began later, or is a transaction by then. Sleeping
// connections run nothing; what replication runs is judged by its delay.
const (
	processSQL = `
SELECT CAST(UTC_TIMESTAMP(6) AS CHAR), p.id = CONNECTION_ID(), p.id, p.user, p.command, CAST(%s AS CHAR), p.info IS NULL
FROM information_schema.processlist p
WHERE p.command NOT IN ('Sleep', 'Daemon', 'Binlog Dump', 'Binlog Dump GTID')`
	mariadbAge = `p.time_ms / 1000`
	// mysqlAge is of whole seconds by the clock, between which a statement may
	// begin: it seems up to mysqlGrain older than it is, and never younger.
	mysqlAge   = `p.time + 1`
	mysqlGrain = 2 * time.Second
)

const (
	// settleReads is how often statements without a text are read again, and
	// settlePause what lies between two reads. A thread that wakes up needs less
	// than a thousandth of the first pause.
	settleReads = 5
	settlePause = 2 * time.Millisecond
	// sameStart is how much two reads of one statement may differ in when it
	// began.
	sameStart = mysqlGrain
)

// running is a statement that runs.
type running struct {
	thread string
	// started is zero where it cannot be read.
	started time.Time
	// waking: it has no text yet. A thread that gets a statement says so before
	// it sets the time, so until then it is as old as the sleep that it was in,
	// which may be hours.
	waking bool
}

// processes is what one read of the server's threads has shown.
type processes struct {
	now     time.Time
	grain   time.Duration
	running []running
	replica bool
}

// statements returns what runs. What seems to wake up is read again: the statement
// that it wakes up for begins after the first read, so it does not count, unless the
// next read shows one that began when the first read said.
func (c activityReader) statements(ctx context.Context) (processes, error) {
	first, err := c.processes(ctx)
	if err != nil {
		return first, err
	}
	first.running, err = settle(first.running, func(n int) ([]running, error) {
		if err := pause(ctx, settlePause<<n); err != nil {
			return nil, err
		}
		p, err := c.processes(ctx)
		return p.running, err
	})
	return first, err
}

// settle returns seen without what only seemed to be old. again is the n-th read
// after the first. What still wakes up after the last read is taken as it seems.
func settle(seen []running, again func(n int) ([]running, error)) ([]running, error) {
	var kept, waking []running
	for _, s := range seen {
		if s.waking {
			waking = append(waking, s)
		} else {
			kept = append(kept, s)
		}
	}
	for n := 0; n < settleReads && len(waking) > 0; n++ {
		now, err := again(n)
		if err != nil {
			return nil, err
		}
		var still []running
		for _, s := range waking {
			switch same := s.in(now); {
			case same == nil:
			case same.waking:
				still = append(still, *same)
			default:
				kept = append(kept, *same)
			}
		}
		waking = still
	}
	return append(kept, waking...), nil
}

// mayWrite returns the statements of seen that may write rows, or have left rows
// that are not visible yet: all but those of transactions that only read. open is
// the transactions that were read after seen.
//
// Between the two a transaction may have ended, and a report that had run for an
// hour would seem to have written for that long. So an old statement without a
// transaction is read again. One that has ended counts only if its thread
// has a transaction, which it may have left behind, or one without a thread was
// left behind; what it has committed is in every later snapshot. Where later
// cannot tell, it counts.
func mayWrite(seen processes, open []transaction, again func() (processes, error), later func() ([]transaction, error)) ([]running, error) {
	writing, lone := split(seen, open)
	if len(lone) == 0 {
		return writing, nil
	}
	now, err := again()
	if err != nil {
		return nil, err
	}
	var ended []running
	for _, s := range lone {
		if s.in(now.running) != nil {
			writing = append(writing, s)
		} else {
			ended = append(ended, s)
		}
	}
	if len(ended) == 0 {
		return writing, nil
	}
	left, err := later()
	if err != nil && !errors.Is(err, errStale) && !errors.Is(err, errHidden) {
		return nil, err
	}
	for _, s := range ended {
		if err != nil || writes(left, s.thread) || writes(left, noThread) {
			writing = append(writing, s)
		}
	}
	return writing, nil
}

// split separates the statements that may write from those that are older than what
// the horizon allows for anyway, and have no transaction.
func split(seen processes, open []transaction) (writing, lone []running) {
	for _, s := range seen.running {
		switch {
		case writes(open, s.thread):
			writing = append(writing, s)
		case slices.ContainsFunc(open, func(t transaction) bool { return t.thread == s.thread }):
		case seen.now.Sub(s.started) > margin:
			lone = append(lone, s)
		default:
			writing = append(writing, s)
		}
	}
	return writing, lone
}

func writes(open []transaction, thread string) bool {
	return slices.ContainsFunc(open, func(t transaction) bool { return t.thread == thread && t.writes })
}

// in finds the statement in another read; nil means that it has ended.
func (s running) in(others []running) *running {
	for i, other := range others {
		if other.thread == s.thread && other.started.Sub(s.started).Abs() <= sameStart {
			return &others[i]
		}
	}
	return nil
}

func (c activityReader) processes(ctx context.Context) (processes, error) {
	rows, err := c.rows(ctx, "read running statements", processStatement(c.conn.mariadb))
	if err != nil {
		return processes{}, err
	}
	p, err := processesOf(rows)
	if !c.conn.mariadb {
		p.grain = mysqlGrain
	}
	return p, err
}

func processStatement(mariadb bool) string {
	if mariadb {
		return fmt.Sprintf(processSQL, mariadbAge)
	}
	return fmt.Sprintf(processSQL, mysqlAge)
}

// processesOf reads the rows of processStatement. Our own must be among them, as
// it is for any account.
func processesOf(rows [][][]byte) (processes, error) {
	var p processes
	for _, row := range rows {
		p.now = instant(row[0])
		switch user := string(row[3]); {
		case string(row[1]) == "1", user == "unauthenticated user":
		case user == "system user", strings.HasPrefix(string(row[4]), "Slave_"):
			p.replica = true
		default:
			p.running = append(p.running, running{string(row[2]), began(p.now, row[5]), string(row[6]) == "1"})
		}
	}
	if p.now.IsZero() {
		return processes{}, &observer.Fault{Class: observer.ClassDriver, Err: errors.New("read running statements: our own is not among them")}
	}
	return p, nil
}

// began is so many seconds before now; zero for what is no number.
func began(now time.Time, age []byte) time.Time {
	seconds, err := strconv.ParseFloat(string(age), 64)
	if err != nil {
		return time.Time{}
	}
	return now.Add(-time.Duration(seconds * float64(time.Second)))
}
