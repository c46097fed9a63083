package observer

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Detect says which differences between two polls are events.
type Detect string

// The three detections.
const (
	// DetectNew makes one event of each key, ever.
	DetectNew Detect = "new"
	// DetectChange makes an event of each version of a row: of a new key, and
	// of a known one whose data differ from what was observed last.
	DetectChange Detect = "change"
	// DetectSnapshot reads every row in every poll. It is DetectChange, and
	// finds rows that are gone. A row that comes back is new again, under the
	// next version of its key.
	DetectSnapshot Detect = "snapshot"
)

// Spec describes an observer.
type Spec struct {
	// Stream is the observer's id and the stream of its events. Required.
	Stream string
	// EventType is the type of its events. Required.
	EventType string
	// Detect is required.
	Detect Detect
	// Query is what is read; its Stream is set to the one above.
	Query Query
	// ChunkRows and ChunkBytes bound what is committed together; about two
	// chunks are in memory at a time. 0 means 5,000 rows and 8 MiB. A chunk
	// exceeds ChunkBytes only when a single row does.
	ChunkRows, ChunkBytes int
	// MaxChanged ends a poll early when it has met this many new or changed
	// rows; the next poll goes on from there. Rows that have not changed do
	// not count, so any limit makes progress. 0 means no limit.
	MaxChanged int
	// MaxGone is the share of the live rows, above 0 and up to 1, that one
	// snapshot may lack before it is disbelieved; a single row always may. A
	// snapshot without any row is disbelieved whatever the share. 0 means 0.2.
	MaxGone float64
	// CommitTimeout bounds one commit; a poll that is cancelled lets a commit
	// that has begun run to its end. 0 means 30 s.
	CommitTimeout time.Duration
	// Logger receives a DEBUG record of each commit; nil means none.
	Logger *slog.Logger
	// Now is the time of events whose row has no timestamp; nil means
	// time.Now.
	Now func() time.Time
}

func (s Spec) withDefaults() Spec {
	s.Query.Stream = s.Stream
	s.ChunkRows = orDefault(s.ChunkRows, 5000)
	s.ChunkBytes = orDefault(s.ChunkBytes, 8<<20)
	s.MaxGone = orDefault(s.MaxGone, 0.2)
	s.CommitTimeout = orDefault(s.CommitTimeout, 30*time.Second)
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	return s
}

func orDefault[T int | float64 | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}

// validate reports every mistake at once. It expects the defaults to be set.
func (s Spec) validate() error {
	var errs []error
	check := func(ok bool, message string) {
		if !ok {
			errs = append(errs, errors.New(message))
		}
	}
	check(s.Stream != "", "stream is empty")
	check(s.EventType != "", "event type is empty")
	switch s.Detect {
	case DetectNew, DetectChange, DetectSnapshot:
	default:
		errs = append(errs, fmt.Errorf("detection is %q, want new, change or snapshot", s.Detect))
	}
	check((s.Query.Table == "") != (s.Query.SQL == ""), "want either a table or a query")
	check(len(s.Query.Key) > 0, "key is empty")
	check(s.ChunkRows > 0 && s.ChunkBytes > 0, "chunk size is negative")
	check(s.MaxChanged >= 0, "limit of changed rows is negative")
	check(s.MaxGone > 0 && s.MaxGone <= 1, "share of rows that may be gone is not between 0 and 1")
	check(s.CommitTimeout > 0, "commit timeout is negative")
	return errors.Join(errs...)
}
