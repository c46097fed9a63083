package observer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/failpoint"
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
	// DetectSnapshot reads all rows, over and over. It is DetectChange, and
	// finds rows that are gone. A row that comes back is new again, under the
	// next version of its key.
	DetectSnapshot Detect = "snapshot"
)

// Start says where an observer begins with a source that it has never polled.
// The zero value is the beginning of the source.
type Start struct {
	// Now begins at the horizon of the first poll, or without one at the source's clock.
	Now bool
	// Began returns the low-water mark of a stream's first commit, where a stream with
	// Now began. A source that was replaced is read from there; nil means from the
	// beginning of the source.
	Began func(ctx context.Context, stream string) (string, error)
	// At begins at that time, or at the beginning of a source that has no row yet
	// whose form it could follow.
	At time.Time
}

func (s Start) isZero() bool { return !s.Now && s.At.IsZero() }

// Spec describes an observer.
//
// Each poll of a query with a timestamp reads again from the low-water mark, so rows
// that commit late are observed when they appear. While a transaction of the source
// holds the horizon back for more than a minute, most polls begin at the newest row;
// a full read comes when a quarter of the horizon's lag has passed since the last.
// That quarter bounds the delay of a row that commits late.
//
// DetectSnapshot takes one bit for each key ever numbered, also of rows that are
// gone: 1.25 MB for ten million keys, twice in memory and, while a reading of all
// rows takes several polls, once in the store.
type Spec struct {
	// Stream is the observer's id and the stream of its events. Required.
	Stream string
	// EventType is the type of its events. Required.
	EventType string
	// Detect is required.
	Detect Detect
	// Query says what to read; its Stream is set to the one above.
	Query Query
	// ChunkRows and ChunkBytes bound a commit; about two chunks are in memory at a
	// time. 0 means 5,000 rows and 2 MiB. Only a single row exceeds ChunkBytes.
	ChunkRows, ChunkBytes int
	// MaxChanged ends a poll after this many new or changed rows; the next one goes
	// on. Rows that have not changed do not count, so any limit makes progress. It does
	// not end a single statement that reads all rows. 0 means no limit.
	MaxChanged int
	// Start is where a new stream begins: its first low-water mark. After another
	// database has taken the source's place, At counts again, and Now means where the
	// stream began. DetectSnapshot and queries without a timestamp have no Start.
	Start Start
	// StatementTime is how long a statement hands over rows before another goes on
	// under the same horizon: an open statement holds a lock on its tables, and a
	// snapshot. It begins with the first row, because a source may sort before that.
	// 0 means 10 s. Where [Rows.KeyOrder] is empty, one statement reads the rows that
	// share a timestamp or have none; where all rows are read and no index serves the
	// key, one statement reads all.
	StatementTime time.Duration
	// PollTime bounds a poll; the next one goes on. A single statement that reads all
	// rows may take longer, as long as rows arrive, and so may a poll among the rows
	// that share the timestamp at which it began. A tenth of it is for rows without a
	// timestamp. 0 means no bound.
	PollTime time.Duration
	// MaxRate bounds the rows per second that polls and sweeps together read from the
	// source, in bursts of one chunk. Chunks are then no larger than the rows of a
	// second, or of a tenth of PollTime. 0 means no bound.
	MaxRate float64
	// MaxGone is the share of the live rows, above 0 and up to 1, that a snapshot may
	// lack; ten rows always may. An empty snapshot is always refused. 0 means 0.2.
	MaxGone float64
	// CommitTimeout bounds a commit, which the end of its poll does not interrupt.
	// 0 means 30 s.
	CommitTimeout time.Duration
	// Definition identifies the configuration on which the events depend, with that key. Nodes with
	// different ones do not poll a stream in turns, see [ErrOtherDefinition]. The text
	// before the first "/" is the source's part: when that changes, the source is read
	// again from where the stream began. Nil, or an empty text, compares nothing. An
	// error ends the poll.
	Definition func(ctx context.Context, key []string) (string, error)
	// Loaded returns when that configuration was loaded, by the store's clock. Nil, or
	// the zero time, means that it replaces no other definition.
	Loaded func() time.Time
	// Logged is told of each event that was committed with its row's own timestamp, and of
	// the source's clock at that moment. Nil is not called.
	Logged func(e *events.Event, now time.Time)
	// Logger has a DEBUG record of each commit, and a WARN when the source was
	// replaced, its time went back or its rows lie in the future; nil means none.
	Logger *slog.Logger
	// Now is the node's clock; nil means time.Now.
	Now func() time.Time
}

// shares is how many times the share of the rows without a place in the order of
// timestamps makes a poll.
const shares = 10

func (s Spec) withDefaults() Spec {
	s.Query.Stream = s.Stream
	s.ChunkRows = cmp.Or(s.ChunkRows, 5000)
	s.ChunkBytes = cmp.Or(s.ChunkBytes, 2<<20)
	if s.MaxRate > 0 {
		s.ChunkRows = min(s.ChunkRows, int(math.Ceil(s.MaxRate)))
		if s.PollTime > 0 { // Or a poll would wait for one chunk alone.
			s.ChunkRows = min(s.ChunkRows, int(math.Ceil(s.MaxRate*s.PollTime.Seconds()/shares)))
		}
	}
	s.MaxGone = cmp.Or(s.MaxGone, 0.2)
	s.StatementTime = cmp.Or(s.StatementTime, 10*time.Second)
	s.CommitTimeout = cmp.Or(s.CommitTimeout, 30*time.Second)
	s.Logger = cmp.Or(s.Logger, slog.New(slog.DiscardHandler))
	if s.Definition == nil {
		s.Definition = func(context.Context, []string) (string, error) { return "", nil }
	}
	if s.Loaded == nil {
		s.Loaded = func() time.Time { return time.Time{} }
	}
	if s.Now == nil {
		s.Now = failpoint.Now
	}
	return s
}

// readsAll reports whether each reading is of all rows.
func (s Spec) readsAll() bool { return s.Detect == DetectSnapshot || s.Query.Timestamp == "" }

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
	check(len(s.Query.Key) > 0 || s.Query.Table != "", "key is empty, and only a table has a primary key")
	check(s.ChunkRows > 0 && s.ChunkBytes > 0, "chunk size is negative")
	check(s.MaxChanged >= 0, "limit of changed rows is negative")
	check(s.MaxRate >= 0, "rate of rows is negative")
	check(!s.Start.Now || s.Start.At.IsZero(), "start is both now and a timestamp")
	check(s.Start.isZero() || !s.readsAll(), "start needs a timestamp and another detection than snapshot, which reads every row")
	check(s.MaxGone > 0 && s.MaxGone <= 1, "share of rows that may be gone is not between 0 and 1")
	check(s.StatementTime > 0 && s.PollTime >= 0, "time of a statement or a poll is negative")
	check(s.CommitTimeout > 0, "commit timeout is negative")
	return errors.Join(errs...)
}
