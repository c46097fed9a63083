package observer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

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
	// Now begins at the horizon of the first poll, or at the source's clock
	// where there is no horizon at that moment.
	Now bool
	// Began returns the low-water mark of a stream's first commit, which is where
	// one with Now began. A source that was replaced is read from there; nil
	// stands for the beginning of the source.
	Began func(ctx context.Context, stream string) (string, error)
	// At begins at that time. A source that cannot write it, because it has
	// no row yet whose form could be followed, begins at its beginning.
	At time.Time
}

func (s Start) isZero() bool { return !s.Now && s.At.IsZero() }

// Spec describes an observer.
//
// Late rows of a query with a timestamp are observed when they appear: each
// poll reads again from the low-water mark. Where a transaction of the source
// holds its horizon back for more than a minute, that would be more and more to
// read, so polls in between begin at the newest row, and the rows below it are
// read again only when a quarter of the time has passed by which the horizon is
// behind. A row that commits late is then delayed by at most that quarter: one
// hour behind a transaction of four.
//
// DetectSnapshot remembers which rows were met in one bit for each key that was
// ever numbered, gone ones included: 1.25 MB for ten million keys, twice in memory
// and once in the store while a reading of all rows takes several polls.
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
	// chunks are in memory at a time. 0 means 5,000 rows and 2 MiB. A chunk
	// exceeds ChunkBytes only when a single row does.
	ChunkRows, ChunkBytes int
	// MaxChanged ends a poll early when it has met this many new or changed
	// rows; the next poll goes on from there. Rows that have not changed do
	// not count, so any limit makes progress. One statement that reads all rows
	// is read to its end all the same. 0 means no limit.
	MaxChanged int
	// Start is where a stream begins that was never polled; the low-water mark
	// is set there with the first poll. After another database has taken the
	// source's place, At counts again, and Now means where the stream began. It is
	// refused for DetectSnapshot and for queries without a timestamp.
	Start Start
	// Limit bounds the rows of one read of a query with a timestamp; a poll
	// makes as many reads as it needs, each under the horizon that was read
	// first. After a failure of ClassRetry the reads are made smaller than
	// this, down to 1,000 rows, and larger again with each poll that succeeds;
	// a node remembers that until it ends. 0 means no limit. It does not
	// concern polls that read all rows.
	Limit int
	// StatementTime is for how long a read hands over rows before it ends and the
	// next one goes on, under the horizon of the first: an open statement holds
	// a lock on its tables, and a snapshot. It begins with the first row, lest one
	// that has to sort them first does so for nothing. Rows without a timestamp, and rows
	// that share one, are not parted where [Rows.KeyOrder] is empty. 0 means 10 s. Where all rows are read, by DetectSnapshot
	// or without a timestamp, and no index serves the key, one statement reads them.
	StatementTime time.Duration
	// PollTime bounds a poll. What a poll by key has not read then, the next one does;
	// one statement that reads all rows may take longer, as long as rows arrive, and so
	// may a poll among the rows that share the timestamp at which it began. A tenth of it
	// is for rows without a timestamp. 0 means no bound.
	PollTime time.Duration
	// MaxRate bounds the rows per second that are read from the source, by
	// polls and sweeps together. Chunks are then no larger than what may be
	// read in a second, or in a tenth of PollTime, and one that was saved up may come
	// at once. 0 means no bound.
	MaxRate float64
	// MaxGone is the share of the live rows, above 0 and up to 1, that one
	// snapshot may lack before it is refused; ten rows always may. A snapshot
	// without any row is refused whatever the share. 0 means 0.2.
	MaxGone float64
	// CommitTimeout bounds one commit; a poll that is cancelled lets a commit
	// that has begun run to its end. 0 means 30 s.
	CommitTimeout time.Duration
	// Definition returns what identifies all of the observer's configuration that
	// its events depend on. Nodes with different ones do not poll one stream in
	// turns, see [ErrOtherDefinition]. Nil, or the empty text, means that nothing is
	// compared. What stands before its first "/" is the source's part: when that is
	// another one, the source is read again from where the stream began. An error
	// ends the poll, as one of the source does: it is not known yet which that is.
	Definition func(ctx context.Context) (string, error)
	// Loaded returns when that configuration was loaded, by the store's clock. Nil,
	// or the zero time, means that it takes no other's place.
	Loaded func() time.Time
	// Logger receives a DEBUG record of each commit, and a WARN where the
	// source was replaced, its time went back or its rows lie in the future;
	// nil means none.
	Logger *slog.Logger
	// Now is the time of events whose row has no timestamp; nil means
	// time.Now.
	Now func() time.Time
}

func (s Spec) withDefaults() Spec {
	s.Query.Stream = s.Stream
	s.ChunkRows = orDefault(s.ChunkRows, 5000)
	s.ChunkBytes = orDefault(s.ChunkBytes, 2<<20)
	if s.MaxRate > 0 {
		s.ChunkRows = min(s.ChunkRows, int(math.Ceil(s.MaxRate)))
		if s.PollTime > 0 { // Lest a poll waits for one chunk alone.
			s.ChunkRows = min(s.ChunkRows, int(math.Ceil(s.MaxRate*s.PollTime.Seconds()/shares)))
		}
	}
	s.MaxGone = orDefault(s.MaxGone, 0.2)
	s.StatementTime = orDefault(s.StatementTime, 10*time.Second)
	s.CommitTimeout = orDefault(s.CommitTimeout, 30*time.Second)
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if s.Definition == nil {
		s.Definition = func(context.Context) (string, error) { return "", nil }
	}
	if s.Loaded == nil {
		s.Loaded = func() time.Time { return time.Time{} }
	}
	if s.Now == nil {
		s.Now = failpoint.Now
	}
	return s
}

// readsAll says that every read returns every row, whatever was read before.
func (s Spec) readsAll() bool {
	return s.Detect == DetectSnapshot || s.Query.Timestamp == ""
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
	check(s.Limit >= 0, "limit of rows is negative")
	check(s.MaxRate >= 0, "rate of rows is negative")
	check(!s.Start.Now || s.Start.At.IsZero(), "start is both now and a timestamp")
	check(s.Start.isZero() || !s.readsAll(), "start needs a timestamp and another detection than snapshot, which reads every row")
	check(s.MaxGone > 0 && s.MaxGone <= 1, "share of rows that may be gone is not between 0 and 1")
	check(s.StatementTime > 0 && s.PollTime >= 0, "time of a statement or a poll is negative")
	check(s.CommitTimeout > 0, "commit timeout is negative")
	return errors.Join(errs...)
}
