package takeover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/test/kit/testbed"
)

// lead is how long before a tick the rows of its poll are inserted; slow is
// how much longer than planned anything may take.
const (
	lead = 2 * time.Second
	slow = time.Minute
)

// errOver says that the turn was over before the node was struck.
var errOver = errors.New("the turn was over before the strike")

// sample strikes a node in the middle of a poll and measures how long its work
// stands still.
func (n *clusterRun) sample(ctx context.Context, kind Kind) (s Sample, err error) {
	if err := errors.Join(n.whole(ctx), n.quiet(ctx)); err != nil {
		return s, err
	}
	at, err := n.prepare(ctx)
	if err != nil {
		return s, err
	}
	s.Kind = kind
	victim, err := n.holder(ctx, 1+rand.IntN(rowsOfSample/chunkSize/4))
	if err != nil {
		return s, err
	}
	rules := n.rules()
	struck := time.Now()
	if err := victim.inject(kind); err != nil {
		return s, err
	}
	s.Took, err = n.resumed(ctx, victim, struck)
	if err == nil {
		s.Rule = ruleBetween(rules, n.rules())
		err = n.finished(ctx, at, victim)
	}
	return s, errors.Join(err, victim.heal(ctx, kind))
}

// prepare inserts rows shortly before the next tick, which it returns.
func (n *clusterRun) prepare(ctx context.Context) (at time.Time, err error) {
	var now time.Time
	if err := n.database.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
		return at, fmt.Errorf("read the clock: %w", err)
	}
	at = time.Unix(0, (now.Add(lead).UnixNano()/int64(n.interval)+1)*int64(n.interval))
	if err := testbed.Wait(ctx, at.Add(-lead).Sub(now)); err != nil {
		return at, err
	}
	_, err = n.source.Exec(ctx, "INSERT INTO orders (order_id) SELECT $1 || '-' || i FROM generate_series(1, $2::int) i",
		fmt.Sprint(at.Unix()), rowsOfSample)
	if err != nil {
		return at, fmt.Errorf("insert orders: %w", err)
	}
	n.inserted += rowsOfSample
	return at, nil
}

// holder waits for that many commits of the poll and returns the node that does
// them.
func (n *clusterRun) holder(ctx context.Context, commits int) (*member, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, n.interval+slow, errors.New("nobody polls"))
	defer cancel()
	name := ""
	for range commits {
		news, err := n.news.WaitForNotification(ctx)
		if err != nil {
			return nil, fmt.Errorf("wait for commits: %w", errors.Join(context.Cause(ctx), err))
		}
		name = news.Payload
	}
	if m := n.member(name); m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("no node is named %q", name)
}

// resumed waits for the first commit of another node and returns how long after
// the strike it took effect.
func (n *clusterRun) resumed(ctx context.Context, victim *member, struck time.Time) (took time.Duration, err error) {
	err = testbed.Until(ctx, n.ttl+n.interval+slow, func() error {
		var at *time.Time
		err := n.database.QueryRow(ctx, `
			SELECT min(pg_xact_commit_timestamp(xmin)) FROM takeover_commit
			 WHERE node <> $1 AND id > (SELECT max(id) - $2 FROM takeover_commit) AND pg_xact_commit_timestamp(xmin) > $3`,
			victim.config.Node, 2*rowsOfSample/chunkSize, struck).Scan(&at)
		if err != nil {
			return fmt.Errorf("read the commits: %w", err)
		}
		if at != nil {
			took = at.Sub(struck)
			return nil
		}
		return n.open(ctx)
	})
	return took, err
}

// open complains that nobody has gone on yet, or that there is nothing left to
// go on with.
func (n *clusterRun) open(ctx context.Context) error {
	left, err := n.left(ctx)
	switch {
	case err != nil:
		return err
	case left <= 0:
		return testbed.Final(errOver)
	}
	return errors.New("nobody goes on")
}

// left is how many rows have no event yet.
func (n *clusterRun) left(ctx context.Context) (int64, error) {
	var done int64
	if err := n.database.QueryRow(ctx, "SELECT last_seq FROM obs_cursor WHERE stream = 'orders'").Scan(&done); err != nil {
		return 0, fmt.Errorf("read the cursor: %w", err)
	}
	return n.inserted - done, nil
}

// finished waits until the turn is over, and wants it to be that of the tick,
// had by another node. Rows that came too late for that one are told in a later.
func (n *clusterRun) finished(ctx context.Context, at time.Time, victim *member) error {
	err := testbed.Until(ctx, n.ttl+n.interval+slow, func() error {
		var turn time.Time
		var node string
		err := n.database.QueryRow(ctx, "SELECT turn_at, last_node FROM obs_schedule WHERE type = 'order'").Scan(&turn, &node)
		switch {
		case err != nil && !errors.Is(err, pgx.ErrNoRows):
			return fmt.Errorf("read the turn: %w", err)
		case turn.Before(at):
			return errors.New("the turn is not over")
		case node == victim.config.Node && turn.Equal(at):
			return testbed.Final(errOver)
		}
		left, err := n.left(ctx)
		if err == nil && left > 0 {
			err = fmt.Errorf("%d rows are not told", left)
		}
		return err
	})
	if err != nil {
		return err
	}
	n.testbed.Progress("takeover: %s goes on without %s", n.name, victim.config.Node)
	return nil
}

// quiet forgets the news of turns that are over.
func (n *clusterRun) quiet(ctx context.Context) error {
	for {
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		_, err := n.news.WaitForNotification(short)
		over := short.Err() != nil && ctx.Err() == nil
		cancel()
		if over {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the news: %w", errors.Join(context.Cause(ctx), err))
		}
	}
}

// knownRules are those that the log names.
func knownRules() []string { return []string{"session-gone", "ttl"} }

// rules counts, for each rule, the leases of the type that were taken over by
// it, as the logs say.
func (n *clusterRun) rules() map[string]int {
	counts := make(map[string]int)
	for _, rule := range knownRules() {
		for _, m := range n.members {
			counts[rule] += m.process.Log.Count(`"msg":"Lease taken over"`, `"name":"order-observer-poll"`, fmt.Sprintf(`"rule":%q`, rule))
		}
	}
	return counts
}

// ruleBetween is the rule that was applied between two counts; empty for none.
func ruleBetween(before, after map[string]int) string {
	for _, rule := range knownRules() {
		if after[rule] > before[rule] {
			return rule
		}
	}
	return ""
}
