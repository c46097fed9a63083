// Package pglog reads from the log of a PostgreSQL server when observerd read
// its tables. No node can deny what the source itself has seen.
//
// The server writes its log as JSON, and of the nodes' roles all statements;
// the end of each session is logged too: see [Settings] and [RoleSettings].
package pglog

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// Settings are those of the server, by the names of postgresql.conf. The log is
// in the folder log of the server's data.
func Settings() map[string]string {
	return map[string]string{
		"logging_collector": "on",
		"log_destination":   "jsonlog",
		"log_directory":     "log",
		"log_filename":      "server.log",
		"log_rotation_age":  "0",
		"log_rotation_size": "0",
		"log_file_mode":     "0644",
		"log_timezone":      "UTC",
		// A session cannot change its mind about this, so that no role can have it.
		"log_disconnections": "on",
	}
}

// FileName is the log's below the server's data; all starts of the server
// continue it.
const FileName = "log/server.json"

// RoleSettings are the statements that let the server log what a role does.
func RoleSettings(role string) []string {
	return []string{
		"ALTER ROLE " + role + " SET log_statement = 'all'",
		"ALTER ROLE " + role + " SET log_duration = on", // This shows when a statement has ended.
	}
}

// record is what we need of a line of the log.
type record struct {
	Timestamp string `json:"timestamp"`
	User      string `json:"user"`
	Session   string `json:"session_id"`
	Name      string `json:"application_name"`
	Severity  string `json:"error_severity"`
	Message   string `json:"message"`
	Backend   string `json:"backend_type"`
}

// stampLayout is the time of a record; log_timezone is UTC.
const stampLayout = "2006-01-02 15:04:05.999 MST"

// Polls reads a log. streams has the name of the stream for each name that a
// reading session gives itself; node tells the node of a role and is false for
// a role that is no node's.
//
// A poll begins with the transaction of its read and ends with it, be it a single
// statement. Such a read is begun when its snapshot was made, and ends when its last row was
// sent, whether the node has taken it or not. What ended with its connection, its server, or the log is not whole.
func Polls(log io.Reader, session func(application string) (stream string, ok bool), node func(role string) (name string, ok bool)) ([]history.Poll, error) {
	r := reader{session: session, node: node, within: make(map[string]time.Time), single: make(map[string]bool), open: make(map[string]*history.Poll), failed: make(map[string]bool)}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		if r.torn != nil {
			return nil, fmt.Errorf("line %d of the source's log: %w", n-1, r.torn)
		}
		if err := r.line(lines.Bytes()); err != nil {
			return nil, fmt.Errorf("line %d of the source's log: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the source's log: %w", err)
	}
	r.endAll(r.last)
	// Two reads of a poll may be within one millisecond.
	slices.SortFunc(r.polls, func(a, b history.Poll) int { return cmp.Or(a.Begin.Compare(b.Begin), a.End.Compare(b.End)) })
	return r.polls, nil
}

type reader struct {
	session func(string) (string, bool)
	node    func(string) (string, bool)
	// within is when the transaction began that the session is in; zero for one that reads no
	// tables, and for a read of which it is known what it reads.
	within map[string]time.Time
	open   map[string]*history.Poll // by session
	single map[string]bool          // sessions whose read is one statement
	failed map[string]bool          // sessions whose read met an error
	polls  []history.Poll
	last   time.Time
	// started is when the server did last. The logger of the one before may say
	// later what had happened by then.
	started time.Time
	// torn is why the last line could not be read: half of one is what a server
	// leaves behind that is killed, but only at the end.
	torn error
}

func (r *reader) line(text []byte) error {
	// A server that is killed may leave half a line behind, and its successor
	// writes on in the same line. Within a record, quotes are escaped.
	begins := max(0, bytes.LastIndex(text, []byte(`{"timestamp":`)))
	var rec record
	if err := json.Unmarshal(text[begins:], &rec); err != nil {
		if begins == 0 {
			r.torn = err
		}
		return nil
	}
	at, err := time.Parse(stampLayout, rec.Timestamp)
	if err != nil {
		return err
	}
	r.last = at
	switch {
	case rec.Backend == "startup" && strings.HasPrefix(rec.Message, "database system was"):
		r.endAll(at)
		r.started = at
	case rec.Session == "":
	case strings.HasPrefix(rec.Message, "disconnection:"):
		r.end(rec.Session, at, false)
	case rec.Severity == "ERROR" || rec.Severity == "FATAL":
		r.failed[rec.Session] = true
		if r.single[rec.Session] {
			r.end(rec.Session, at, false)
		}
	case strings.HasSuffix(rec.Message, ": "+beginning):
		r.end(rec.Session, at, false)
		r.within[rec.Session] = at
	case strings.Contains(rec.Message, ": BEGIN"):
		r.end(rec.Session, at, false)
		r.within[rec.Session] = time.Time{}
	case strings.HasPrefix(rec.Message, "duration:"):
		if r.single[rec.Session] {
			r.end(rec.Session, at, true)
		}
	case strings.Contains(rec.Message, ": COMMIT"), strings.Contains(rec.Message, ": ROLLBACK"):
		r.end(rec.Session, at, true)
	case strings.HasPrefix(rec.Message, "execute ") && !strings.Contains(rec.Message, ": SET LOCAL "):
		r.begin(rec, at)
	}
	return nil
}

// beginning is the statement that begins the transaction of a read. By the first one behind
// it that sets nothing, the name of the session says what it reads.
const beginning = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"

func (r *reader) begin(rec record, at time.Time) {
	began, within := r.within[rec.Session]
	if within {
		at, r.within[rec.Session] = began, time.Time{}
	}
	if at.IsZero() || at.Before(r.started) {
		return
	}
	node, ok := r.node(rec.User)
	if !ok {
		return
	}
	if stream, ok := r.session(rec.Name); ok {
		r.open[rec.Session] = &history.Poll{Stream: stream, Node: node, Begin: at}
		r.failed[rec.Session], r.single[rec.Session] = false, !within
	}
}

func (r *reader) end(session string, at time.Time, whole bool) {
	delete(r.within, session)
	delete(r.single, session)
	if poll, ok := r.open[session]; ok {
		delete(r.open, session)
		poll.End, poll.Whole = at, whole && !r.failed[session]
		r.polls = append(r.polls, *poll)
	}
}

func (r *reader) endAll(at time.Time) {
	for session := range r.open {
		r.end(session, at, false)
	}
}
