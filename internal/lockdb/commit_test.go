package lockdb_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
)

// chunk makes a chunk of n new rows that follows the cursor.
func chunk(c observer.Cursor, n int) observer.Chunk {
	ch := observer.Chunk{Before: c, CommitID: uuid.New()}
	for i := range n {
		number := c.Rows + int64(i) + 1
		key := fmt.Sprintf("ORD-%06d", number)
		ch.New = append(ch.New, observer.Observed{Key: key, Hash: []byte("0123456789abcdef"), Version: 1, Number: number})
		ch.Events = append(ch.Events, events.Event{
			ID: events.NewID(c.Stream, c.Epoch, key, 1, []byte("h")), Stream: c.Stream, Type: events.TypeNewOrder, Subject: key,
			Version: 1, Change: events.ChangeNew, Snapshot: i%2 == 1, Time: time.Date(2026, 1, 1, 0, 0, 0, 123456000, time.UTC),
			Data: []byte(`{"order_id":"` + key + `","total":0.10000000000000000000000000001,"note":"a\u0000b"}`),
		})
	}
	c.Low, c.Newest = fmt.Sprintf("2026-01-01 00:00:00.%06d", c.Rows), fmt.Sprintf("2026-01-01 00:00:00.%06d", c.Rows+int64(n))
	c.Fingerprint, c.FirstReading, c.Refusal, c.Accepted = "fp", c.Version%2 == 0, "", ""
	c.Marks.Identity, c.Marks.Columns, c.Marks.Form = fmt.Sprint("test:", c.Version), fmt.Sprint("columns ", c.Version), fmt.Sprint("form ", c.Version)
	c.Marks.FullColumns = c.Marks.Columns
	c.Marks.KeyForm, c.Marks.FollowedFrom = fmt.Sprint("key form ", c.Version), fmt.Sprint("followed from ", c.Version)
	c.Marks.RereadAt = time.Date(2026, 3, 1, 12, 0, int(c.Version), 123456789, time.UTC)
	ch.Advance(c)
	return ch
}

func mustCommit(t *testing.T, s *lockdb.Store, ch observer.Chunk) observer.Cursor {
	t.Helper()
	c, err := s.Commit(t.Context(), ch)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func cursorOf(t *testing.T, s *lockdb.Store, stream string) observer.Cursor {
	t.Helper()
	c, err := s.Cursor(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCommitWritesAllOfAChunk(t *testing.T) {
	t.Parallel()
	// 3 rows take the single statement of PostgreSQL, 2500 its COPY.
	for _, n := range []int{3, 2500} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
				s := db.Store(acquire(t, db, "order-observer-poll"))
				c := cursorOf(t, s, "orders")
				first := chunk(c, n)
				first.Dead = []observer.Dead{{Key: "bad", Reason: "column total is not a number", Raw: []byte(`{}`)}}
				c = mustCommit(t, s, first)
				second := chunk(c, n)
				second.Changed = []observer.Observed{{Key: "ORD-000001", Hash: []byte("fedcba9876543210"), Version: 2, Number: 1}}
				second.Dead = first.Dead
				second.After.Refusal, second.After.Accepted = "a refusal", "another"
				c = mustCommit(t, s, second)

				if start, err := db.Streams().Start(t.Context(), "orders"); err != nil || start != first.After.Low {
					t.Errorf("the stream started at %q, %v, want %q", start, err, first.After.Low)
				}
				if again := cursorOf(t, s, "orders"); again != c {
					t.Errorf("cursor in the database %+v, as the commit said %+v", again, c)
				}
				if want := int64(2 * n); c.LastSeq != want || c.Rows != want || c.Live != want || c.Version != 2 {
					t.Errorf("cursor after %d rows: %+v", want, c)
				}
				read, err := db.Log().After(t.Context(), "orders", 0, 2*n+1)
				if err != nil {
					t.Fatal(err)
				}
				checkEvents(t, read, append(first.Events, second.Events...))
				known, err := s.Observed(t.Context(), c, []string{"ORD-000001", "ORD-000002", "nobody", "it's \"quoted\""})
				if err != nil {
					t.Fatal(err)
				}
				if known[0].Version != 2 || string(known[0].Hash) != "fedcba9876543210" || known[1].Number != 2 || known[2].Version != 0 || known[3].Version != 0 {
					t.Errorf("observed: %+v", known)
				}
				if n := count(t, url, `SELECT count(*) FROM obs_dead`); n != 1 {
					t.Errorf("the same poison row is kept %d times", n)
				}
			})
		})
	}
}

// TestCommitOfAKeyThatIsObserved writes nothing, whether rows come in a statement or a COPY,
// and whether the key was observed before or is another row's of the chunk.
func TestCommitOfAKeyThatIsObserved(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 2500} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
				s := db.Store(acquire(t, db, "order-observer-poll"))
				c := mustCommit(t, s, chunk(cursorOf(t, s, "orders"), n))
				second := chunk(c, n)
				for _, key := range []string{"ORD-000001", second.New[0].Key} {
					second.New[n-1].Key = key
					if _, err := s.Commit(t.Context(), second); !errors.Is(err, observer.ErrObserved) {
						t.Errorf("%s: got %v, want ErrObserved", key, err)
					}
				}
				if again := cursorOf(t, s, "orders"); again != c {
					t.Errorf("cursor in the database %+v, want it unchanged %+v", again, c)
				}
				if n := count(t, url, `SELECT count(*) FROM obs_event`); int64(n) != c.LastSeq {
					t.Errorf("%d events, want %d", n, c.LastSeq)
				}
				second.New[n-1].Key = "another"
				mustCommit(t, s, second)
			})
		})
	}
}

func checkEvents(t *testing.T, got, want []events.Event) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
	for i := range got {
		g, w := got[i], want[i]
		if g.Seq != int64(i)+1 || g.ID != w.ID || g.Subject != w.Subject || g.Type != w.Type || g.Change != w.Change ||
			!g.Time.Equal(w.Time) || string(g.Data) != string(w.Data) || g.Version != w.Version || g.Stream != w.Stream ||
			g.Snapshot != w.Snapshot || time.Since(g.Observed).Abs() > time.Hour {
			t.Fatalf("event %d:\n got %+v\nwant %+v", i, g, w)
		}
	}
}

// TestCommitWithoutLeaseWritesNothing is the safety property: whatever has
// become of the lease, a commit that names an ended term leaves no trace.
func TestCommitWithoutLeaseWritesNothing(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*testing.T, *lockdb.DB, string, lock.Grant){
		"released": func(t *testing.T, db *lockdb.DB, _ string, g lock.Grant) {
			if err := db.Leases().Release(t.Context(), g); err != nil {
				t.Fatal(err)
			}
		},
		"expired": func(t *testing.T, _ *lockdb.DB, url string, g lock.Grant) { expire(t.Context(), t, url, g) },
		"stolen": func(t *testing.T, db *lockdb.DB, url string, g lock.Grant) {
			expire(t.Context(), t, url, g)
			acquire(t, db, g.Key)
		},
		"deleted and taken": func(t *testing.T, db *lockdb.DB, _ string, g lock.Grant) {
			if err := db.Leases().Release(t.Context(), g); err != nil {
				t.Fatal(err)
			}
			acquire(t, db, g.Key)
		},
	}
	for name, end := range ends {
		for _, n := range []int{3, 2500} {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				t.Parallel()
				onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
					g := acquire(t, db, "order-observer-poll")
					s := db.Store(g)
					before := mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 2))
					end(t, db, url, g)
					_, err := s.Commit(t.Context(), chunk(before, n))
					if !errors.Is(err, lock.ErrFenced) {
						t.Fatalf("commit under an ended lease: %v", err)
					}
					if after := cursorOf(t, s, "orders"); after != before {
						t.Errorf("the cursor moved from %+v to %+v", before, after)
					}
					for _, table := range []string{"obs_event", "obs_observed"} {
						if n := count(t, url, `SELECT count(*) FROM `+table); n != 2 {
							t.Errorf("%s has %d rows, want 2", table, n)
						}
					}
				})
			})
		}
	}
}

func TestCommitFromAnOldCursorWritesNothing(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 2500} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
				s := db.Store(acquire(t, db, "order-observer-poll"))
				old := cursorOf(t, s, "orders")
				mustCommit(t, s, chunk(old, 2))
				if _, err := s.Commit(t.Context(), chunk(old, n)); !errors.Is(err, observer.ErrConflict) {
					t.Fatalf("commit from an old cursor: %v", err)
				}
				if n := count(t, url, `SELECT count(*) FROM obs_event`); n != 2 {
					t.Errorf("%d events, want 2", n)
				}
			})
		})
	}
}

// TestCommitRenewsTheLease shows that a poll that commits needs no heartbeat.
func TestCommitRenewsTheLease(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		g := acquire(t, db, "order-observer-poll")
		exec(t.Context(), t, url, map[string]string{
			"sqlite":   `UPDATE int_lock SET created_date = strftime('%Y-%m-%d %H:%M:%f000', 'now', '-20 seconds')`,
			"postgres": `UPDATE int_lock SET created_date = (now() AT TIME ZONE 'UTC') - interval '20 s'`,
		})
		s := db.Store(g)
		mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 1))
		h, err := db.Leases().Holder(t.Context(), request(g.Key))
		if err != nil || h.Left < 15*time.Second || h.Node != "node-a" || h.Fence != g.Fence {
			t.Errorf("holder after the commit: %+v, %v", h, err)
		}
	})
}

// TestMarksMayGoBack covers a source that was restored, or whose clock was: the
// marks are what the commit says, and the sequence goes on.
func TestMarksMayGoBack(t *testing.T) {
	t.Parallel()
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
				s := db.Store(acquire(t, db, "order-observer-poll"))
				c := mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 2))
				earlier := chunk(c, n)
				earlier.After.Low, earlier.After.Newest, earlier.After.Marks.RereadAt = "", "2001-01-01 00:00:00.000000", time.Time{}
				c = mustCommit(t, s, earlier)
				got := cursorOf(t, s, "orders")
				if got != c || got.Low != "" || got.Newest != earlier.After.Newest || got.LastSeq != int64(2+n) || !got.Marks.RereadAt.IsZero() {
					t.Errorf("the cursor is %+v, the commit said %+v", got, c)
				}
			})
		})
	}
}

// TestLookupFromAnotherCursorIsAConflict covers a server that is behind the one
// that has the cursor, and rows that another poller has observed since.
func TestLookupFromAnotherCursorIsAConflict(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		s := db.Store(acquire(t, db, "order-observer-poll"))
		c := mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 2))
		ahead := c
		ahead.Version++
		ahead.Rows += 10
		missing := c
		missing.ID++
		for name, other := range map[string]observer.Cursor{"ahead": ahead, "missing": missing} {
			if known, err := s.Observed(t.Context(), other, []string{"ORD-000001", "nobody"}); !errors.Is(err, observer.ErrConflict) {
				t.Errorf("%s: looked up %v, %v", name, known, err)
			}
			visit := func(observer.Observed) error { return nil }
			if err := s.Live(t.Context(), other, "", visit); !errors.Is(err, observer.ErrConflict) {
				t.Errorf("%s: live rows: %v", name, err)
			}
		}
		if known, err := s.Observed(t.Context(), c, []string{"nobody"}); err != nil || known[0].Version != 0 {
			t.Errorf("looked up a row that is not there: %v, %v", known, err)
		}
	})
}

// TestCommitOverwritesNoRowThatIsNewToIt is the last line of defence: a poll
// that takes a known row for a new one writes nothing.
func TestCommitOverwritesNoRowThatIsNewToIt(t *testing.T) {
	t.Parallel()
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
				s := db.Store(acquire(t, db, "order-observer-poll"))
				c := mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 2))
				blind := c
				blind.Rows = 0
				again := chunk(blind, n)
				again.Before = c
				if _, err := s.Commit(t.Context(), again); err == nil {
					t.Error("rows that were known became events again")
				}
				if after := cursorOf(t, s, "orders"); after != c {
					t.Errorf("the cursor moved from %+v to %+v", c, after)
				}
				if n := count(t, url, `SELECT count(*) FROM obs_event`); n != 2 {
					t.Errorf("%d events, want 2", n)
				}
			})
		})
	}
}
