package mysql

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

// mysqlGrain: an age of MySQL is of whole seconds by the clock, between which a statement may
// begin. It seems up to mysqlGrain older than it is, and never younger.
const mysqlGrain = 2 * time.Second

// running is a statement that runs.
type running struct {
	thread string
	// started is zero where it cannot be read. A thread that is just getting a
	// statement seems as old as the sleep that it was in.
	started time.Time
}

// processes is what one read of the server's threads has shown.
type processes struct {
	now     time.Time
	grain   time.Duration
	running []running
	replica bool
}

// processesOf reads rows of [processSQL]. Our own must be among them, as
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
			p.running = append(p.running, running{string(row[2]), began(p.now, row[5])})
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
