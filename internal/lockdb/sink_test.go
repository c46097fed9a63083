package lockdb_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestOffsetsOfManyStreamsMoveAtOnce moves three streams in one call, then one whose events
// the log has not, and one that is gone on with by an operator.
func TestOffsetsOfManyStreamsMoveAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		ctx, log := t.Context(), db.Log()
		s := db.Store(acquire(t, db, "order-observer-poll"))
		var ranges []events.Range
		for i, stream := range []string{"orders", "stock", "tasks"} {
			mustCommit(t, s, chunk(cursorOf(t, s, stream), 5+i))
			ranges = append(ranges, events.Range{Stream: stream, After: int64(i), Last: 4})
		}
		id, err := log.Claim(ctx, "inbox", 1)
		if err != nil || id == uuid.Nil {
			t.Fatalf("the log is %s, %v", id, err)
		}
		if again, err := log.Claim(ctx, "inbox", 2); err != nil || again != id {
			t.Errorf("the log is %s now, and was %s, %v", again, id, err)
		}
		batch, server, err := log.Read(ctx, ranges, 1<<20)
		if got := fmt.Sprint(placesOf(batch)); err != nil || (server == "") != (db.Backend() == "sqlite") || got != "[orders 1 orders 2 orders 3 orders 4 stock 2 stock 3 stock 4 tasks 3 tasks 4]" {
			t.Fatalf("read %s from %q, %v", got, server, err)
		}
		if part, _, err := log.Read(ctx, ranges, 1); err != nil || len(part) != 1 {
			t.Errorf("%d events in a batch of a byte, %v", len(part), err)
		}

		all, server, err := log.Read(ctx, []events.Range{{Stream: "orders", Last: 4}, {Stream: "stock", Last: 4}, {Stream: "tasks", Last: 4}}, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		ends := events.Ends(all, id, nil)
		steps := []events.Step{{Events: all[:4], Server: server, Stored: &ends[0]}, {Events: all[4:8]}, {Events: all[8:], Server: "another", Stored: &ends[2]}}
		for range 2 { // An answer may be lost.
			if err := log.Move(ctx, "inbox", steps, 2); err != nil {
				t.Fatal(err)
			}
		}
		want := []events.Mark{
			{Stream: "orders", Offset: 4, Stored: events.Position{Stream: "orders", Seq: 4, ID: all[3].ID, Digest: ends[0].Digest}},
			{Stream: "stock", Offset: 4}, // What a filter leaves out moves the offset alone.
			{Stream: "tasks", Offset: 4, Stored: events.Position{Stream: "tasks", Seq: 4, ID: all[11].ID, Digest: ends[2].Digest}},
		}
		wantMarks(t, db, want)

		held, taken, err := log.Holds(ctx, []events.Position{ends[0], {Stream: "stock", Seq: 2, ID: uuid.Max}, {Stream: "tasks", Seq: 99}, {Stream: "none", Seq: 1}})
		if err != nil || !slices.Equal(held, ends[:1]) || len(taken) > 0 {
			t.Errorf("held %v, taken %v, %v", held, taken, err)
		}
		exec(ctx, t, url, both(`DELETE FROM obs_event WHERE stream = 'orders' AND seq <= 4`))
		if held, taken, err = log.Holds(ctx, ends[:1]); err != nil || len(held) > 0 || !slices.Equal(taken, ends[:1]) {
			t.Errorf("after retention: held %v, taken %v, %v", held, taken, err)
		}

		for name, c := range map[string]struct {
			offset int64
			epoch  int64
			want   error
		}{"by an earlier term": {4, 1, events.ErrStale}, "of an offset that has moved": {3, 2, events.ErrLogChanged}} {
			from := events.Mark{Stream: "stock", Offset: c.offset}
			if err := log.Seek(ctx, "inbox", from, 1, events.Position{Stream: "stock", Seq: 1, ID: all[4].ID}, c.epoch); !errors.Is(err, c.want) {
				t.Errorf("a seek %s: %v, want %v", name, err, c.want)
			}
		}
		back := events.Position{Stream: "stock", Seq: 2, ID: all[5].ID, Digest: uuid.Max}
		if err := log.Seek(ctx, "inbox", want[1], 2, back, 2); err != nil {
			t.Fatal(err)
		}
		want[1].Offset, want[1].Stored = 2, back
		wantMarks(t, db, want)
	})
}

func placesOf(batch []events.Event) (places []string) {
	for _, e := range batch {
		places = append(places, fmt.Sprint(e.Stream, " ", e.Seq))
	}
	return places
}

func both(text string) map[string]string { return map[string]string{"postgres": text, "sqlite": text} }

func wantMarks(t *testing.T, db *lockdb.DB, want []events.Mark) {
	t.Helper()
	marks, err := db.Log().Marks(t.Context(), "inbox")
	slices.SortFunc(marks, func(a, b events.Mark) int {
		if a.Stream < b.Stream {
			return -1
		}
		return 1
	})
	if err != nil || !slices.Equal(marks, want) {
		t.Errorf("the log knows of the sink\n%+v, %v, want\n%+v", marks, err, want)
	}
}

// TestOperatorsOfSinks pauses, resumes and adopts, each twice.
func TestOperatorsOfSinks(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		ctx, log, by := t.Context(), db.Log(), lockdb.By{Actor: "ada", Reason: "INC-1"}
		s := db.Store(acquire(t, db, "order-observer-poll"))
		mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 2))
		op := db.Operations()
		paused := func(want bool) {
			t.Helper()
			backlog, err := log.Backlog(ctx, "inbox")
			if err != nil || len(backlog) != 1 || backlog[0].Paused != want {
				t.Errorf("backlog %+v, %v, want paused %t", backlog, err, want)
			}
		}
		acts := []struct {
			name string
			do   func() (bool, error)
		}{
			{"pause-sink", func() (bool, error) { return op.PauseSink(ctx, "inbox", by) }}, // One that was never fed.
			{"resume-sink", func() (bool, error) { return op.ResumeSink(ctx, "inbox", by) }},
			{"adopt-sink", func() (bool, error) { return op.AdoptSink(ctx, "inbox", "orders", by) }},
		}
		for _, act := range acts {
			for _, want := range []bool{true, false} {
				if changed, err := act.do(); err != nil || changed != want {
					t.Errorf("%s: changed %t, %v, want %t", act.name, changed, err, want)
				}
			}
			paused(act.name == "pause-sink")
			audited, err := op.Acts(ctx, lockdb.ActFilter{Action: act.name})
			if err != nil || len(audited) != 1 || audited[0].Subject != "inbox" || audited[0].Actor != "ada" || !contains(audited[0].Detail, "INC-1") {
				t.Errorf("%s: audited %+v, %v", act.name, audited, err)
			}
		}
		wantMarks(t, db, []events.Mark{{Stream: "orders", Adopted: true}})

		id, err := log.Claim(ctx, "inbox", 7)
		if err != nil {
			t.Fatal(err)
		}
		batch, err := log.After(ctx, "orders", 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		end := events.Ends(batch, id, nil)[0]
		if err := log.Move(ctx, "inbox", []events.Step{{Events: batch, Stored: &end}}, 7); err != nil {
			t.Fatal(err)
		}
		wantMarks(t, db, []events.Mark{{Stream: "orders", Offset: 1, Stored: events.Position{Stream: "orders", Seq: 1, ID: end.ID, Digest: end.Digest}}})

		for epoch, want := range map[int64]bool{6: false, 7: true} { // Of an earlier term nothing is believed.
			if err := log.Pause(ctx, "inbox", "410 Gone", epoch); err != nil {
				t.Fatal(err)
			}
			if epoch == 7 {
				paused(want)
			}
		}
		offsets, err := log.Offsets(ctx, time.Now())
		if err != nil || len(offsets) != 1 || offsets[0].Pause == nil || offsets[0].Pause.Reason != "410 Gone" {
			t.Errorf("%+v, %v", offsets, err)
		}
	})
}

// TestEachLogHasAnIdOfItsOwn: a database that was made anew is another log.
func TestEachLogHasAnIdOfItsOwn(t *testing.T) {
	t.Parallel()
	ids := make(map[uuid.UUID]bool)
	folder := t.TempDir()
	urls := []string{"sqlite:" + folder + "/a.db", "sqlite:" + folder + "/b.db", pgtest.New(t), pgtest.New(t)} // None is a copy.
	for _, url := range urls {
		db := open(t, url)
		if err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		id, err := db.Log().Claim(t.Context(), "inbox", 1)
		if err != nil || id.Version() != 4 || id.Variant() != uuid.RFC4122 {
			t.Errorf("the id %s, %v", id, err)
		}
		ids[id] = true
	}
	if len(ids) != len(urls) {
		t.Errorf("the ids %v", slices.Collect(maps.Keys(ids)))
	}
}
