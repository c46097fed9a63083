package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// lateEvent is one event of a stream beside late commits.
type lateEvent struct {
	id     int64
	status string
	logged time.Time
}

// lateResult is what a stream has seen of the writers' work.
type lateResult struct {
	// neverSeen are rows without any event, stale those whose last event is
	// not their last state.
	neverSeen, stale int
	// repeated are events of a version that had one, phantoms those of a
	// version that was never committed.
	repeated, phantoms int
	// prompt and late are the delays of versions by how they were committed.
	prompt, late []time.Duration
}

func (r lateResult) all() []time.Duration { return slices.Concat(r.prompt, r.late) }

// judge compares the events of a stream with what was written. final are the
// rows as they are now.
func judge(events []lateEvent, committed map[string]lateVersion, final map[int64]string) lateResult {
	var r lateResult
	last, seen := map[int64]string{}, map[string]bool{}
	for _, e := range events {
		last[e.id] = e.status
		version, known := committed[e.status]
		switch {
		case !known:
			r.phantoms++
		case seen[e.status]:
			r.repeated++
		case version.late:
			r.late = append(r.late, e.logged.Sub(version.at))
		default:
			r.prompt = append(r.prompt, e.logged.Sub(version.at))
		}
		seen[e.status] = true
	}
	for id, status := range final {
		switch got, ok := last[id]; {
		case !ok:
			r.neverSeen++
		case got != status:
			r.stale++
		}
	}
	return r
}

// audit judges both streams.
func (b *sourceBench) audit(ctx context.Context, w *lateWriters, final map[int64]string, inexact int) ([]figure, error) {
	if len(final) == 0 || len(final) != len(w.known) {
		return nil, fmt.Errorf("the writers have committed %d rows, and %d are there", len(w.known), len(final))
	}
	var results [2]lateResult
	for i, name := range []string{lateStream, newestStream} {
		events, err := lateEvents(ctx, b.database, name)
		if err != nil {
			return nil, err
		}
		results[i] = judge(events, w.committed, final)
		if n := results[i].phantoms; n > 0 {
			return nil, fmt.Errorf("%d events of %s tell what was never committed", n, name)
		}
	}
	return lateFigures(results[0], results[1], len(final), len(w.committed), inexact), nil
}

func lateFigures(ours, plain lateResult, rows, versions, inexact int) []figure {
	return []figure{
		{
			what:   "late commits",
			value:  say("%s never seen and %s last states missed, of %s rows in %s versions", whole(ours.neverSeen), whole(ours.stale), whole(rows), whole(versions)),
			beside: say("from the newest row on: %s never seen, %s last states missed", whole(plain.neverSeen), whole(plain.stale)),
			goal:   "0 never seen", met: []bool{ours.neverSeen+ours.stale == 0},
		},
		{
			what: "late commits: repeated events", value: say("%s", whole(ours.repeated)),
			beside: say("from the newest row on: %s", whole(plain.repeated)),
			goal:   "0 repeated", met: []bool{ours.repeated == 0},
		},
		{what: "late commits: polls without an exact horizon", value: say("%s", whole(inexact))},
		{
			what:  "from commit to event log",
			value: delays("p50 %s ms, p99 %s ms", ours.all()), beside: delays("from the newest row on, of those seen: p50 %s ms, p99 %s ms", plain.all()),
		},
		{
			what:  "from commit to event log, late commits alone",
			value: delays("p50 %s ms, p99 %s ms", ours.late), beside: delays("commits at once: p50 %s ms, p99 %s ms", ours.prompt),
		},
	}
}

func delays(format string, all []time.Duration) phrase {
	return say(format, whole(millis(quantile(all, 0.5))), whole(millis(quantile(all, 0.99))))
}

// lateEvents are the events of a stream, in their order.
func lateEvents(ctx context.Context, database, name string) (all []lateEvent, err error) {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	rows, err := conn.Query(ctx, "SELECT subject::bigint, data::text, logged_at FROM obs_event WHERE stream = $1 ORDER BY seq", name)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var e lateEvent
		var data string
		if err := rows.Scan(&e.id, &data, &e.logged); err != nil {
			return nil, err
		}
		// Whatever the case of the member's name.
		var row struct{ Status string }
		if err := json.Unmarshal([]byte(data), &row); err != nil {
			return nil, fmt.Errorf("read an event: %w", err)
		}
		e.status = row.Status
		all = append(all, e)
	}
	return all, rows.Err()
}
