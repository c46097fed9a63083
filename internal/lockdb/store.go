package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/wait"
)

// Store is the coordination database as one poll sees it: bound to the lease
// under which it commits. It is an [observer.Store].
type Store struct {
	node  *DB
	db    *sqldb.DB
	sql   *sqldb.Statements[partSQL]
	grant lock.Grant
	// peek leaves the database as it is.
	peek  bool
	known matches // of the last look-up, kept for its room
}

// Store binds the database to a lease.
func (db *DB) Store(g lock.Grant) *Store {
	return &Store{node: db, db: db.db, sql: db.sql, grant: g}
}

// Peek returns a store that can only be read, for a dry run: the cursor of a
// stream that was never polled is not created, and a commit finds its lease
// ended.
func (db *DB) Peek() *Store {
	s := db.Store(lock.Grant{})
	s.peek = true
	return s
}

// cursor is Cursor of a stream that has one. The error is [sql.ErrNoRows] for another.
func (s *Store) cursor(ctx context.Context, stream string) (c observer.Cursor, err error) {
	var marks string
	err = s.db.Read.QueryRowContext(ctx, s.sql.SQL().Store.Cursor, s.db.Prepared(stream)...).Scan(&c.ID, &c.Stream, &c.Version, &c.Epoch, &c.LastSeq, &c.Rows, &c.Live, &c.Low, &c.Newest, &c.FirstReading,
		&c.Fingerprint, &c.Definition, sqldb.ScanTime(&c.DefinedAt), &c.Refusal, &c.Accepted, &marks)
	if err == nil {
		c.Marks, err = observer.DecodeMarks(marks)
	}
	return c, err
}

// Cursor implements [observer.Store].
func (s *Store) Cursor(ctx context.Context, stream string) (observer.Cursor, error) {
	began := time.Now()
	c, err := s.cursor(ctx, stream)
	if errors.Is(err, sql.ErrNoRows) && s.peek {
		return observer.Cursor{Stream: stream}, nil
	}
	if errors.Is(err, sql.ErrNoRows) {
		// It makes the cursor, if the lease still lives and no other node has.
		if _, err := s.db.Exec(ctx, "create the cursor of "+stream, s.sql.SQL().Store.Create, fencedArgs(s.grant, stream)...); err != nil {
			return observer.Cursor{}, err
		}
		c, err = s.cursor(ctx, stream)
		if errors.Is(err, sql.ErrNoRows) {
			err = lock.ErrFenced
		}
	}
	if err != nil {
		return observer.Cursor{}, fmt.Errorf("read the cursor of %s: %w", stream, err)
	}
	s.node.events.SawEnd(ctx, stream, c.LastSeq, began)
	return c, nil
}

// Observed implements [observer.Store]. Its error is [observer.ErrConflict] when
// the cursor has changed since the caller read it: the observed rows may have too.
func (s *Store) Observed(ctx context.Context, c observer.Cursor, keys []string) ([]observer.Observed, error) {
	known := &s.known
	known.reset(keys)
	if c.Rows == 0 {
		return known.rows, nil // Nothing was observed of this stream yet.
	}
	if len(keys) >= rangeLeast && ascend(keys) {
		if err := s.observed(ctx, c, s.sql.SQL().Store.Between, known.note, keys[0], keys[len(keys)-1], 2*len(keys)); err != nil {
			return nil, err
		}
	}
	missing := known.missing()
	if len(missing) == 0 {
		return known.rows, nil
	}
	return known.rows, s.observed(ctx, c, s.sql.SQL().Store.Observed, known.note, s.db.List(missing))
}

// rangeLeast is how many keys that ascend are first looked for in the range between the first
// and the last of them: where they come in the order of an index, most are neighbours in ours,
// of which 5,000 are read in a third of the time of 5,000 look-ups. What is not found there is
// looked up, so that no order of keys is relied on.
const rangeLeast = 2000

// ascend reports whether most keys come behind the one before them.
func ascend(keys []string) bool {
	n := 0
	for i := 1; i < len(keys); i++ {
		if keys[i-1] < keys[i] {
			n++
		}
	}
	return 4*n >= 3*len(keys)
}

// observed reads observed rows of a stream by Observed, Between or Live. The row without a
// key is the cursor.
func (s *Store) observed(ctx context.Context, c observer.Cursor, text string, visit func(observer.Observed), args ...any) error {
	what, current := "look up observed rows of "+c.Stream, s.peek // A dry run goes on from commits that never were.
	err := s.db.QueryNative(ctx, what, text,
		func(scan func(...any) error) error {
			var o observer.Observed
			if err := scan(&o.Key, &o.Hash, &o.Version, &o.Number, &o.Gone); err != nil {
				return err
			}
			if o.Key == "" {
				current = current || o.Version == c.Version
				return nil
			}
			visit(o)
			return nil
		}, append([]any{c.ID}, args...)...)
	if err == nil && !current {
		err = fmt.Errorf("%s: %w", what, observer.ErrConflict)
	}
	return err
}

// Live implements [observer.Store]. Its error is [observer.ErrConflict] as that
// of [Store.Observed] is.
func (s *Store) Live(ctx context.Context, c observer.Cursor, after string, visit func(observer.Observed) error) error {
	for {
		page, err := s.livePage(ctx, c, after)
		if err != nil {
			return err
		}
		for _, o := range page {
			if err := visit(o); err != nil {
				return fmt.Errorf("visit the live rows of %s: %w", c.Stream, err)
			}
			after = o.Key
		}
		if len(page) < livePage {
			return nil
		}
	}
}

// livePage bounds what Live reads at once: the caller may stop early, and
// would pay for all that was asked for.
const livePage = 2000

func (s *Store) livePage(ctx context.Context, c observer.Cursor, after string) ([]observer.Observed, error) {
	page := make([]observer.Observed, 0, livePage)
	err := s.observed(ctx, c, s.sql.SQL().Store.Live, func(o observer.Observed) { page = append(page, o) }, after, livePage)
	return page, err
}

// resolveTimeout bounds how long the fate of a commit is looked into after its
// connection was lost.
const resolveTimeout = 20 * time.Second

// Commit implements [observer.Store]. Its error is lock.ErrFenced when the
// lease had ended and [observer.ErrConflict] when the cursor had moved, or the
// sweep that the chunk is a step of was not running any more. It is
// [observer.ErrObserved] where a key was observed.
func (s *Store) Commit(ctx context.Context, ch observer.Chunk) (observer.Cursor, error) {
	failpoint.Hit("commit.before")
	began := time.Now()
	err := sqldb.Redacted(s.node.engine.commit(ctx, s.grant, &ch))
	if err != nil && sqldb.OutcomeUnknown(err) && !errors.Is(err, lock.ErrFenced) && !errors.Is(err, observer.ErrConflict) {
		err = s.resolve(ctx, &ch, err)
	}
	switch {
	case sqldb.KeyTaken(err, "obs_observed"):
		err = fmt.Errorf("%w: %w", observer.ErrObserved, err)
	case errors.Is(err, lock.ErrFenced):
		s.node.metrics.staleCommits.Inc()
	case errors.Is(err, observer.ErrConflict):
		s.node.metrics.conflicts.Inc()
	}
	if err != nil {
		return observer.Cursor{}, fmt.Errorf("commit to %s: %w", ch.Before.Stream, err)
	}
	failpoint.Hit("commit.after")
	if n := len(ch.Events); n > 0 {
		s.node.events.Committed(ch.After.Stream, ch.After.LastSeq, ch.Events[n-1].ID, began)
		if s.node.onCommit != nil {
			s.node.onCommit()
		}
	}
	return ch.After, nil
}

// resolve finds out whether a commit without an answer took effect. The
// orphaned backend may still be at work, so it is not enough to look: the
// version is moved, which waits for the orphan's row lock and makes its
// compare-and-set fail should it come later. Without the lease nothing is
// moved: the orphan is fenced then. In both cases the commit id reports whether
// it came before.
func (s *Store) resolve(ctx context.Context, ch *observer.Chunk, cause error) error {
	failpoint.Hit("commit.unknown")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveTimeout)
	defer cancel()
	for {
		committed, err := s.fate(ctx, ch)
		if err == nil {
			return s.resolved(committed, cause)
		}
		if !sqldb.Unavailable(err) || ctx.Err() != nil {
			return fmt.Errorf("the outcome of a commit is unknown: %w", errors.Join(cause, err))
		}
		wait.For(ctx, 200*time.Millisecond)
	}
}

func (s *Store) resolved(committed bool, cause error) error {
	if committed {
		s.node.metrics.unknownCommits.WithLabelValues("committed").Inc()
		s.node.log.Info("Commit whose answer was lost had committed", "err", cause)
		return nil
	}
	s.node.metrics.unknownCommits.WithLabelValues("aborted").Inc()
	return fmt.Errorf("the connection was lost before the commit: %w", cause)
}

// fate moves the version if the commit has not, and the lease still lives.
func (s *Store) fate(ctx context.Context, ch *observer.Chunk) (committed bool, err error) {
	err = s.db.InTx(ctx, "resolve a commit", func(tx *sql.Tx) error {
		// Waits for an orphan that holds the row, and so comes before the lease.
		var id sql.NullString
		err := tx.QueryRowContext(ctx, s.sql.SQL().Store.LockCursor, ch.Before.ID).Scan(&id)
		if err != nil {
			return err
		}
		if committed = id.String == ch.CommitID.String(); committed {
			return nil
		}
		_, err = tx.ExecContext(ctx, s.sql.SQL().Store.Outdate, fencedArgs(s.grant, ch.Before.ID, ch.Before.Version)...)
		return err
	})
	return committed, err
}

// advanceArgs are the parameters of Advance, and of the cursor in Commit.
func advanceArgs(ch *observer.Chunk) []any {
	after := ch.After
	return []any{
		ch.Before.ID, ch.Before.Version,
		after.Version, ch.CommitID.String(), after.LastSeq, after.Rows, after.Live,
		after.Low, after.Newest, after.FirstReading,
		after.Fingerprint, after.Definition,
		after.Refusal, after.Accepted, after.Marks.Encode(),
	}
}

// verdict names what refused a commit.
func verdict(leased, current bool) error {
	switch {
	case !leased:
		return lock.ErrFenced
	case !current:
		return observer.ErrConflict
	}
	return nil
}

// Generation implements [observer.Store].
func (s *Store) Generation(ctx context.Context, c observer.Cursor) (g observer.Generation, err error) {
	err = s.db.Query(ctx, "read how far the reading of "+c.Stream+" has come", s.sql.SQL().Store.Generation,
		func(scan func(...any) error) error {
			var took int64
			err := scan(&g.Reading, &g.Key, &g.Complete, &g.Seen, &g.Rows, sqldb.ScanTime(&g.StartedAt), sqldb.ScanTime(&g.FinishedAt), &took)
			g.Took = time.Duration(took) * time.Millisecond
			return err
		}, c.ID)
	return g, err
}

func generationArgs(db *sqldb.DB, ch *observer.Chunk) []any {
	g := ch.Generation
	var finished any
	if !g.FinishedAt.IsZero() {
		finished = db.TimeArg(g.FinishedAt)
	}
	seen := g.Seen
	if seen == nil {
		seen = []byte{}
	}
	return []any{ch.Before.ID, g.Reading, g.Key, g.Complete, seen, g.Rows, db.TimeArg(g.StartedAt), finished, g.Took.Milliseconds()}
}
