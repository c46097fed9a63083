package postgres

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// The first and the last instants of a timestamp of PostgreSQL.
const (
	firstMoment = -211813488000 * microsPerSecond   // 4714-11-24 BC
	lastMoment  = 9223371331200*microsPerSecond - 1 // 294276-12-31
	day         = 86400 * microsPerSecond
)

// What is made of a number is what the server would have sent, to the byte: rows
// are compared by their texts, whatever has written them.
func TestMomentsAreWrittenAsTheServerWritesThem(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	if _, err := conn.Exec(t.Context(), "SET timezone = 'UTC'; SET datestyle = 'ISO'"); err != nil {
		t.Fatal(err)
	}
	for _, micros := range momentsToTry() {
		for k, oid := range map[kind]uint32{kindTimestamptz: pgtype.TimestamptzOID, kindTimestamp: pgtype.TimestampOID} {
			param := binary.BigEndian.AppendUint64(nil, uint64(micros))
			answer := conn.PgConn().ExecParams(t.Context(), "SELECT $1", [][]byte{param}, []uint32{oid}, []int16{pgx.BinaryFormatCode}, nil).Read()
			if answer.Err != nil {
				t.Fatalf("%d: %v", micros, answer.Err)
			}
			want := string(answer.Rows[0][0])
			if got := string(appendMoment(nil, micros, k)); got != want {
				t.Errorf("%d microseconds as kind %d are %q, and %q of the server", micros, k, got, want)
			}
		}
	}
}

// A server that does not say how it counts sends text, and its rows look the same.
func TestRowsAreTheSameOfNumbersAndOfText(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for k, as := range map[kind]timeKind{kindTimestamptz: timeUTC, kindTimestamp: timeWall} {
		numbers, texts := newMomentEncoder(t, k, as, berlin, true), newMomentEncoder(t, k, as, berlin, false)
		for _, micros := range momentsToTry() {
			number, text := binary.BigEndian.AppendUint64(nil, uint64(micros)), appendMoment(nil, micros, k)
			got := describeRow(numbers([][]byte{number, []byte("7")}))
			if want := describeRow(texts([][]byte{text, []byte("7")})); got != want {
				t.Errorf("%s as kind %d:\n%s\nas text:\n%s", text, k, got, want)
			}
		}
		for _, encode := range []func([][]byte) *observer.Row{numbers, texts} {
			if row := encode([][]byte{nil, []byte("7")}); row.Err == nil || row.Cursor != "" {
				t.Errorf("NULL as kind %d: %+v", k, row)
			}
		}
	}
}

func describeRow(r *observer.Row) string {
	return fmt.Sprintf("%q at %q, %v: %s, %v", r.Key, r.Cursor, r.Time, r.Data, r.Err)
}

// newMomentEncoder encodes rows of a timestamp, which is in the key as well, and an
// integer.
func newMomentEncoder(t *testing.T, k kind, as timeKind, in *time.Location, number bool) func(values [][]byte) *observer.Row {
	t.Helper()
	q := observer.Query{Table: "orders", Key: []string{"id", "at"}, Timestamp: "at"}
	s, err := source.Select(q, []source.Column{{Name: "at"}, {Name: "id"}}, "orders")
	if err != nil {
		t.Fatal(err)
	}
	b, err := source.NewBuilder(q, s)
	if err != nil {
		t.Fatal(err)
	}
	p := plan{selection: s, kinds: []kind{k, kindInteger}, time: as}
	c := &cells{plan: p, location: in, numbered: []bool{number, false}}
	return func(values [][]byte) *observer.Row {
		c.values = values
		return b.Row(c)
	}
}

// momentsToTry are the edges, and instants of each age with fractions of each
// length.
func momentsToTry() []int64 {
	all := []int64{math.MinInt64, math.MaxInt64, 0, -1, 1, 500_000, -500_000, day, -day}
	for _, edge := range []int64{firstMoment, lastMoment, year1, year10000} {
		for _, by := range []int64{-day, -microsPerSecond, -1, 0, 1, microsPerSecond, day} {
			all = append(all, min(max(edge+by, firstMoment), lastMoment))
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, span := range [][2]int64{{firstMoment, year1}, {year1, year10000}, {0, 40 * 365 * day}, {year10000, lastMoment}} {
		for unit := int64(1); unit <= microsPerSecond; unit *= 10 {
			for range 30 {
				n := span[0] + int64(random.Uint64N(uint64(span[1]-span[0])))
				all = append(all, max(n/unit*unit, firstMoment))
			}
		}
	}
	return all
}
