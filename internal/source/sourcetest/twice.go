package sourcetest

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

// shownTwice polls rows that are written in the two hours which clocks show with the same
// readings, before and after these go back. Of the two instants of a reading the later
// counts that is not in the source's future. Zones on both sides of Greenwich are tried:
// package time takes either instant.
func shownTwice(t *testing.T, f Fixture) {
	f.exec(ordersTable, "INSERT INTO orders VALUES (1, 'a', '2024-05-01 10:00:00')")
	if f.isZoned(t) {
		return // Its instants are what the database says.
	}
	for _, hours := range []int{-6, 9} {
		for _, until := range []time.Duration{30 * time.Minute, -30 * time.Minute} {
			h := f.horizon(t, orders())
			loc := goingBack(t, h.Now.Add(until), hours)
			now := h.Now.In(loc).Truncate(time.Second)
			earlier := now.Add(-20 * time.Minute)
			want := map[string]time.Time{"1": now, "2": earlier}
			if until < 0 { // A reading that is still to come again.
				want["3"] = now.Add(20*time.Minute - time.Hour)
			}
			f.exec("DELETE FROM orders")
			for key, at := range want {
				f.exec(fmt.Sprintf("INSERT INTO orders VALUES (%s, 'a', '%s')", key, at.Format(time.DateTime)))
			}
			p := f.polls(observer.DetectNew)
			p.src = f.In(loc)
			if stats := p.poll(t); stats.Future != 0 {
				t.Errorf("%d h, %v: %d rows in the future", hours, until, stats.Future)
			}
			events := p.db.Events("orders")
			if len(events) != len(want) {
				t.Errorf("%d h, %v: %d events", hours, until, len(events))
			}
			for _, e := range events {
				if !e.Time.Equal(want[e.Subject]) {
					t.Errorf("%d h, %v: row %s is of %v, want %v", hours, until, e.Subject, e.Time, want[e.Subject].UTC())
				}
			}
		}
	}
}

// isZoned reports whether the instants of a column {timestamp} do not depend on the zone of
// the source.
func (f Fixture) isZoned(t *testing.T) bool {
	t.Helper()
	here := f.read(t, orders(), "")
	f.Source = f.In(time.FixedZone("", 3600))
	return here[0].micros == f.read(t, orders(), "")[0].micros
}

// goingBack is a zone that is so many hours ahead of UTC up to that instant, and an hour
// less from then on.
func goingBack(t *testing.T, at time.Time, hours int) *time.Location {
	t.Helper()
	data := append([]byte("TZif"), make([]byte, 16)...)
	for _, count := range []uint32{0, 0, 0, 1, 2, 4} { // one change, two offsets, 4 bytes of names
		data = binary.BigEndian.AppendUint32(data, count)
	}
	data = binary.BigEndian.AppendUint32(data, uint32(at.Unix()))
	data = append(data, 1)
	for i, offset := range []int{hours * 3600, (hours - 1) * 3600} {
		data = binary.BigEndian.AppendUint32(data, uint32(int32(offset)))
		data = append(data, byte(1-i), byte(2*i))
	}
	loc, err := time.LoadLocationFromTZData("Test/Back", append(data, "S\x00W\x00"...))
	if err != nil {
		t.Fatal(err)
	}
	return loc
}
