package lockdb

import (
	"context"
	"slices"
	"sync"
	"time"
	"unique"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/status"
)

const (
	// pastKept is how long polls are kept in memory, pastEach how many of each observer are
	// kept for longer, and mostPast how many in all.
	pastKept = time.Hour
	pastEach = 60
	mostPast = 50_000
	// pastRead is how many polls one read returns. pastLate is how long after its end a poll
	// may still be committed.
	pastRead = 20_000
	pastLate = 30 * time.Second
)

// Past has the polls of the last hour in memory, so that a page that is looked at reads the
// new ones alone. The zero value is ready to use.
type Past struct {
	mu    sync.Mutex
	polls []status.PastPoll
}

// Polls returns the last polls, oldest first: those of the last hour, and more of observers
// that are polled rarely. now is the database's clock. The result must not be changed.
func (p *Past) Polls(ctx context.Context, db *DB, now time.Time) ([]status.PastPoll, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := time.Unix(0, 0)
	if n := len(p.polls); n > 0 {
		since = p.polls[n-1].FinishedAt
		if since.After(now) { // The clock went back.
			since = now
		}
		since = since.Add(-pastLate)
	}
	read, err := sqldb.All(ctx, db.db, "read the last polls", db.sql.SQL().Report.Past, func(scan sqldb.Scan, one *status.PastPoll) error {
		var started time.Time
		err := scan(&one.Type, &one.Observer, &one.Node, sqldb.ScanTime(&one.TurnAt), sqldb.ScanTime(&started), sqldb.ScanTime(&one.FinishedAt), &one.Outcome, &one.Poison)
		one.Duration = one.FinishedAt.Sub(started)
		for _, text := range []*string{&one.Type, &one.Observer, &one.Node, &one.Outcome} {
			*text = unique.Make(*text).Value()
		}
		return err
	}, db.db.TimeArg(since), pastRead)
	if err != nil {
		return nil, err
	}
	older := p.polls
	if len(read) == pastRead { // There is a gap before them.
		older = nil
	}
	p.polls = kept(older, read, since, now)
	return p.polls, nil
}

// kept returns what is kept of polls that were known, oldest first, and of those that were
// read since, newest first.
func kept(known, read []status.PastPoll, since, now time.Time) []status.PastPoll {
	each := make(map[string]int)
	all := make([]status.PastPoll, 0, len(known)+len(read))
	add := func(one status.PastPoll) {
		if each[one.Observer]++; len(all) < mostPast && (now.Sub(one.FinishedAt) < pastKept || each[one.Observer] <= pastEach) {
			all = append(all, one)
		}
	}
	for _, one := range read {
		add(one)
	}
	for _, one := range slices.Backward(known) {
		if one.FinishedAt.Before(since) {
			add(one)
		}
	}
	slices.Reverse(all)
	return all
}
