// Package sqlsink stores events in two tables of PostgreSQL, each event once.
//
// One statement, which is a transaction, stores a batch: it inserts the events, and moves
// the positions of their streams. So a position and its events are there together, and
// what a lost answer hides is read back.
//
// # The claim
//
// The row of the sink without a stream names the session that may store. A session claims
// the sink when it is opened, under the epoch of its term and an id of its own; a batch
// shares the lock of that row, and stores nothing where it names another session. The claim
// waits for that lock. So whatever a former session had sent is committed when the next
// one has opened, or never will be: also when it sleeps, and when the bytes of its last batch
// are still on their way. As one sink alone has the tables, ids are
// committed in their order, on which readers rely.
//
// # Poolers
//
// All settings are those of a transaction, and no statement has a name on the server, so
// that a pooler may stand before it in any mode.
package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
)

const (
	// closing bounds the good-bye to the server.
	closing = 5 * time.Second
	// uniqueViolation is the SQLSTATE of an event that is stored already, or breaks a key of others.
	uniqueViolation = "23505"
	// maxData is half of what a message to the server can have.
	maxData = 1 << 29
)

// Sink stores in one schema, over one connection. It is a [sink.Resumer].
type Sink struct {
	conn *pgx.Conn
	sql  statements
	id   string
	term sink.Term
	// session is the id of this one in the claim.
	session uuid.UUID
	// at are the positions of streams, as this session has read or left them.
	at map[string]events.Position
	// stores says that this session has stored events: what comes next is new, most likely.
	stores bool
	// broken is why there is no connection any more.
	broken error
}

var _ sink.Resumer = (*Sink)(nil)

// Options say where a feed is.
type Options struct {
	// Sink is the id of the sink. Required.
	Sink string
	// URL is that of the database. Required.
	URL string
	// Schema has the tables. Required.
	Schema string
	// Create makes the tables where they are missing.
	Create bool
}

// Open connects, and claims the sink for a term. The error may be a [sink.StaleError].
func Open(ctx context.Context, o Options, t sink.Term) (*Sink, error) {
	config, err := parse(o.URL)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, explained(ctx, "connect", err)
	}
	s := &Sink{conn: conn, sql: newStatements(o.Schema), id: o.Sink, term: t, session: uuid.New(), at: make(map[string]events.Position)}
	if o.Create {
		err = create(ctx, conn, o.Schema)
	}
	if err == nil {
		err = s.claim(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// create makes the tables, and the schema, that are missing. Who finds them needs no right
// to create any; two nodes that find none do it one after the other.
func create(ctx context.Context, conn *pgx.Conn, schema string) error {
	var noSchema, noTables bool
	err := conn.QueryRow(ctx, missingSQL, schema).Scan(&noSchema, &noTables)
	if err == nil && noTables {
		text := DDL(schema)
		if noSchema {
			text = rendered("CREATE SCHEMA IF NOT EXISTS {schema};\n", schema) + text
		}
		_, err = conn.PgConn().Exec(ctx, "BEGIN; SELECT pg_advisory_xact_lock(8020420160814); "+text+"COMMIT").ReadAll()
	}
	if err != nil {
		return explained(ctx, "create the tables", err)
	}
	return nil
}

// missingSQL reports whether there is no schema $1, and whether one of the tables in it is not
// there. It needs no right at all.
const missingSQL = `
SELECT NOT EXISTS (SELECT FROM pg_catalog.pg_namespace n WHERE n.nspname = $1::text::name),
       2 > (SELECT count(*)
              FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = $1::text::name AND c.relname IN ('obs_feed', 'obs_feed_event'))`

// claim ends what former sessions may store.
func (s *Sink) claim(ctx context.Context) error {
	n, err := s.transact(ctx, s.sql.claim, s.id, s.term.Log, s.term.Epoch, s.session, s.term.Restored)
	if err != nil {
		return explained(ctx, "claim the sink", err)
	}
	if n == 0 {
		return s.stale(ctx)
	}
	return nil
}

// stale says why the claim is not this session's.
func (s *Sink) stale(ctx context.Context) error {
	var holder string
	var epoch int64
	var session uuid.UUID
	err := s.conn.QueryRow(ctx, s.sql.claimed, s.id).Scan(&holder, &epoch, &session)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return errors.New("the row of the sink in obs_feed is gone; was the table emptied, or restored?")
	case err != nil:
		return explained(ctx, "look who has claimed the sink", err)
	case holder != s.id:
		return fmt.Errorf("the tables belong to the sink %s, and serve only one; name another schema, or, if that sink no longer exists, delete its rows from obs_feed", holder)
	case session == s.session:
		return errors.New("the positions in obs_feed are not as this session has left them: the target went back, or was written to")
	case epoch > s.term.Epoch:
		return &sink.StaleError{Epoch: epoch}
	}
	return fmt.Errorf("another session, of epoch %d, has claimed the sink", epoch)
}

// Positions implements [sink.Resumer].
func (s *Sink) Positions(ctx context.Context, streams []string) ([]events.Position, error) {
	rows, _ := s.conn.Query(ctx, s.sql.positions, s.id, streams) // The error comes with the rows.
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p events.Position, err error) {
		err = row.Scan(&p.Stream, &p.Log, &p.Seq, &p.ID, &p.Digest)
		return p, err
	})
	if err != nil {
		return nil, explained(ctx, "read the positions", err)
	}
	s.know(found)
	return found, nil
}

// Deliver implements [sink.Sink].
func (s *Sink) Deliver(ctx context.Context, batch []events.Event) (sink.Result, error) {
	return s.deliver(ctx, batch, true)
}

// Redeliver implements [sink.Resumer].
func (s *Sink) Redeliver(ctx context.Context, batch []events.Event) (sink.Result, error) {
	return s.deliver(ctx, batch, false)
}

// deliver stores all of the batch at once. Where the server refuses an event it looks for it by
// halves, stores what comes before it, and goes on without its stream.
func (s *Sink) deliver(ctx context.Context, batch []events.Event, moves bool) (result sink.Result, err error) {
	last := make(map[string]events.Position)
	refused := 0 // How many at the beginning have one among them that is refused.
	for len(batch) > 0 && err == nil {
		n := len(batch)
		if refused > 0 {
			n = max(1, refused/2)
		}
		var ends []events.Position
		ends, err = s.store(ctx, batch[:n], moves)
		refusal, _ := errors.AsType[*serverError](err)
		switch {
		case err == nil:
			batch, refused = batch[n:], max(0, refused-n)
			for _, end := range ends {
				last[end.Stream] = end
			}
		case refusal == nil || !refusal.refuses:
		case n > 1:
			refused, err = n, nil
		default:
			at := events.Position{Stream: batch[0].Stream, Seq: batch[0].Seq, ID: batch[0].ID}
			result.Rejected = append(result.Rejected, sink.Rejection{Position: at, Reason: refusal.text})
			batch = slices.DeleteFunc(slices.Clone(batch), func(e events.Event) bool { return e.Stream == at.Stream })
			refused, err = 0, nil
		}
	}
	result.Stored = slices.Collect(maps.Values(last))
	return result, err
}

// store stores all of the events or none of them, and moves the positions, unless the events
// come late. It returns the last event of each stream. The error is a [serverError] that refuses
// where it is for one of the events.
func (s *Sink) store(ctx context.Context, part []events.Event, moves bool) ([]events.Position, error) {
	for i := range part {
		if len(part[i].Data) > maxData {
			return nil, &serverError{refuses: true, text: fmt.Sprintf("its data have %d bytes, and PostgreSQL takes %d at most", len(part[i].Data), maxData)}
		}
	}
	ends := events.Ends(part, s.term.Log, s.at)
	moved := ends
	if !moves {
		moved = nil
	}
	args := slices.Concat([]any{s.id, s.term.Log, s.term.Epoch, s.session}, s.knownColumns(ends), positionColumns(moved), eventColumns(part))
	statement := s.sql.store // It fails without the unique key, too.
	if s.stores {
		statement = s.sql.storeNew
	}
	n, err := s.transact(ctx, statement, args...)
	if server, ok := errors.AsType[*pgconn.PgError](err); ok && s.stores && server.Code == uniqueViolation {
		n, err = s.transact(ctx, s.sql.store, args...)
	}
	if err != nil {
		return nil, explained(ctx, "store events", err)
	}
	if n == 0 {
		return nil, s.stale(ctx)
	}
	s.know(moved)
	s.stores = true
	return ends, nil
}

// know remembers positions. A server that took the place of the target behind a pooler may
// lack the last of them, and the connection does not show it.
func (s *Sink) know(positions []events.Position) {
	for _, p := range positions {
		s.at[p.Stream] = p
	}
}
