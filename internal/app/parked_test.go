package app_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestARefusedEventIsParked has a constraint of the target refuse a task: it and its next
// event are parked, all others go on, and a retry delivers both, in order, once the
// constraint has gone.
func TestARefusedEventIsParked(t *testing.T) {
	t.Parallel()
	target := pgtest.New(t)
	p := setup(t, "").feeding(t, `{id: inbox, type: sql, url: "`+target+`", create: true, on-poison: park}`)
	p.start(t)
	ctx, op := t.Context(), p.operator(t)
	conn, err := pgx.Connect(ctx, target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(ctx)) })
	// inbox complains unless the target has these versions of the tasks, in this order.
	inbox := func(want string) func() error {
		return func() error {
			var got string
			err := conn.QueryRow(ctx, `SELECT coalesce(string_agg(subject || ' ' || version, ', ' ORDER BY id), '')
				FROM obs_feed_event WHERE subject IN ('BAD', 'GOOD')`).Scan(&got)
			if err == nil && got != want {
				err = fmt.Errorf("the inbox has %q, want %q", got, want)
			}
			return err
		}
	}
	add := func(id string) {
		p.write(t, `INSERT INTO wes_tasks VALUES ('`+id+`', 'o', 'CREATED', strftime('%Y-%m-%d %H:%M:%f', 'now'))`)
	}
	change := func(id string) {
		p.write(t, `UPDATE wes_tasks SET status = status || '+', updated_at = strftime('%Y-%m-%d %H:%M:%f', 'now') WHERE task_id = '`+id+`'`)
	}
	add("GOOD")
	eventually(t, inbox("GOOD 1"))
	if _, err := conn.Exec(ctx, `ALTER TABLE obs_feed_event ADD CONSTRAINT good CHECK (subject <> 'BAD')`); err != nil {
		t.Fatal(err)
	}
	add("BAD")
	parked := func(want int) func() error {
		return func() error {
			found, _, err := op.Parked(ctx, admin.ParkedFilter{Sinks: []string{"inbox"}, Key: "BAD"})
			if err == nil && len(found) != want {
				err = fmt.Errorf("parked are %v, want %d", found, want)
			}
			return err
		}
	}
	eventually(t, parked(1))
	change("BAD")
	change("GOOD")
	eventually(t, parked(2))
	eventually(t, inbox("GOOD 1, GOOD 2"))

	all, _, err := op.Parked(ctx, admin.ParkedFilter{})
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	outcomes := func(want ...admin.RetryOutcome) {
		t.Helper()
		done, err := op.RetryParked(ctx, all, admin.By{Actor: "me", Reason: "test"})
		var got []admin.RetryOutcome
		for _, r := range done {
			got = append(got, r.Outcome)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("retried: %v, %v, want %v", got, err, want)
		}
	}
	outcomes(admin.RetryRefused, admin.RetryRefused)
	if _, err := conn.Exec(ctx, `ALTER TABLE obs_feed_event DROP CONSTRAINT good`); err != nil {
		t.Fatal(err)
	}
	outcomes(admin.RetryDelivered, admin.RetryDelivered)
	eventually(t, inbox("GOOD 1, GOOD 2, BAD 1, BAD 2"))
	change("BAD")
	eventually(t, inbox("GOOD 1, GOOD 2, BAD 1, BAD 2, BAD 3"))
}
