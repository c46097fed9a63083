package sourcetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/test/kit/simtest"
)

// KeyFamily are types to any of which the same keys can be converted.
type KeyFamily struct {
	Types []string
	// Literal is the n-th key as a value of each of them.
	Literal func(n int) string
}

// schemaRows is how many rows the table has whose schema changes.
const schemaRows = 6

// schemas is a table whose owner changes its schema between polls.
type schemas struct {
	Fixture
	*polls
	t      *testing.T
	random *rand.Rand
	family KeyFamily

	key   string   // its type
	extra []string // columns that come and go, as "name type"
	added int      // how many there were
	step  int      // notes of the rows
	// subjects are those of the rows, by their number.
	subjects map[string]string
}

// changedSchemas changes schemas at random between polls, of a stream of each kind: each
// change of a row becomes one event, and no row gets another key unless the stream has
// stopped because of the type of its key.
func changedSchemas(t *testing.T, f Fixture) {
	for n, family := range f.KeyFamilies {
		if n > 0 {
			f.exec("DROP TABLE changing")
		}
		s := &schemas{
			Fixture: f, polls: f.polls(observer.DetectChange), t: t, family: family,
			random:   rand.New(rand.NewPCG(simtest.Seed(), uint64(n))), //nolint:gosec // It is no secret.
			subjects: make(map[string]string),
		}
		s.run()
	}
}

func (s *schemas) run() {
	s.key = s.family.Types[0]
	s.exec("CREATE TABLE changing (k " + s.key + " NOT NULL PRIMARY KEY, ref {text}, note {text}, updated_at {timestamp} NOT NULL)")
	for n := range schemaRows {
		s.exec(fmt.Sprintf("INSERT INTO changing VALUES (%s, '%d', '0', '%s')", s.family.Literal(n), n, s.now()))
	}
	s.spec.Query.Table, s.spec.Query.Key = "changing", []string{"k"}
	s.poll(s.t)
	s.check("the first poll", 0, false)
	for range simtest.Checks() / 10 {
		change, stops, renames := s.change()
		s.step++
		s.exec(fmt.Sprintf("UPDATE changing SET note = '%d', updated_at = '%s'", s.step, s.now()))
		before := len(s.db.Events("orders"))
		_, err := s.try(s.t.Context())
		switch stopped := errors.Is(err, observer.ErrColumnsChanged); {
		case err != nil && !stopped:
			s.t.Fatalf("%s: %v", change, err)
		case stopped && !stops, !stopped && stops:
			s.t.Fatalf("%s: the stream has stopped: %t, want %t (%v)", change, stopped, stops, err)
		case stopped:
			if n := len(s.db.Events("orders")) - before; n != 0 {
				s.t.Fatalf("%s: a stream that has stopped made %d events", change, n)
			}
			s.db.Accept("orders")
			s.poll(s.t)
		}
		s.check(change, before, renames)
	}
	if n := len(s.db.Dead("orders")); n > 0 {
		s.t.Errorf("%d poison rows", n)
	}
}

func (s *schemas) now() string {
	return time.Date(2020, 1, 1+s.step, 0, 0, 0, 0, time.UTC).Format(time.DateTime)
}

// change changes the schema. It returns what was done, and whether the stream has to stop
// for that, and may have other keys afterwards.
func (s *schemas) change() (what string, stops, renames bool) {
	switch n := s.random.IntN(10); {
	case n < 5:
		return s.changeKey()
	case len(s.extra) < 8 && n < 8 || len(s.extra) == 0:
		s.added++
		column := fmt.Sprintf("e%d %s", s.added, []string{"{integer}", "{name}"}[s.random.IntN(2)])
		s.extra = append(s.extra, column)
		s.exec("ALTER TABLE changing ADD {column} " + column)
		return "add " + column, false, false
	default: // Of a row of more columns MariaDB says that it is too large.
		i := s.random.IntN(len(s.extra))
		name, kind, _ := strings.Cut(s.extra[i], " ")
		if n <= 8 {
			s.extra = slices.Delete(s.extra, i, i+1)
			s.exec("ALTER TABLE changing DROP COLUMN " + name)
			return "drop " + name, true, false
		}
		s.added++
		s.extra[i] = fmt.Sprintf("e%d %s", s.added, kind)
		s.exec(fmt.Sprintf("ALTER TABLE changing RENAME COLUMN %s TO e%d", name, s.added))
		return "rename " + name, true, false
	}
}

// changeKey gives the key another type, or the same with another width.
func (s *schemas) changeKey() (what string, stops, renames bool) {
	to := s.family.Types[s.random.IntN(len(s.family.Types))]
	sameType := baseType(to) == baseType(s.key)
	for _, statement := range s.AlterKey(s.key, to, s.extra) {
		s.exec(statement)
	}
	what, s.key = fmt.Sprintf("the key from %s to %s", s.key, to), to
	return what, !sameType, !sameType
}

// Recreate is a [Fixture.AlterKey] for a database that changes no type of a column with
// rows.
func Recreate(_, to string, extra []string) []string {
	columns, names := "k "+to+" NOT NULL PRIMARY KEY, updated_at {timestamp} NOT NULL, ref {text}, note {text}", "k, updated_at, ref, note"
	for _, column := range extra {
		name, _, _ := strings.Cut(column, " ")
		columns, names = columns+", "+column, names+", "+name
	}
	var statements []string
	for _, tables := range [][2]string{{"changing", "changed"}, {"changed", "changing"}} {
		statements = append(statements, "CREATE TABLE "+tables[1]+" ("+columns+")",
			"INSERT INTO "+tables[1]+" ("+names+") SELECT "+names+" FROM "+tables[0], "DROP TABLE "+tables[0])
	}
	return statements
}

// baseType is a type without its width.
func baseType(name string) string {
	base, rest, _ := strings.Cut(name, "(")
	if strings.Contains(rest, "unsigned") {
		base += " unsigned"
	}
	return base
}

// check checks the events since then: one of each row, under its key, with what it holds.
func (s *schemas) check(change string, since int, renames bool) {
	seen := make(map[string]bool)
	for _, e := range s.db.Events("orders")[since:] {
		ref := member(s.t, e.Data, "ref")
		before, known := s.subjects[ref]
		switch {
		case seen[ref]:
			s.t.Errorf("%s: a second event of row %s", change, ref)
		case member(s.t, e.Data, "note") != fmt.Sprint(s.step):
			s.t.Errorf("%s: row %s is told of as %s, at step %d", change, ref, e.Data, s.step)
		case known && !renames && (e.Subject != before || e.Change == "new"):
			s.t.Errorf("%s: row %s was %q and is %q, %s", change, ref, before, e.Subject, e.Change)
		}
		seen[ref], s.subjects[ref] = true, e.Subject
	}
	if len(seen) != schemaRows {
		s.t.Errorf("%s: events of %d rows, want %d", change, len(seen), schemaRows)
	}
	if s.t.Failed() {
		s.t.FailNow()
	}
}

// addedColumn has the owner add a column: a reading of all rows refuses it until a person
// accepts it, once, and polls by the timestamp go on.
func addedColumn(t *testing.T, f Fixture) {
	f.exec(ordersTable, ordersIndex)
	insert := func(first, n int) {
		for i := first; i < first+n; i++ {
			f.exec(fmt.Sprintf("INSERT INTO orders (order_id, status, updated_at) VALUES (%d, 'a', '%s')", i+1, second(i)))
		}
	}
	insert(0, 30)
	timeline, snapshot := f.polls(observer.DetectChange), f.polls(observer.DetectSnapshot)
	snapshot.poll(t)
	timeline.pollAll(t)
	f.exec("ALTER TABLE orders ADD {column} carrier {text}")
	insert(30, 20)
	timeline.pollAll(t)
	if n := len(timeline.db.Events("orders")); n < 50 || n > 60 {
		t.Errorf("%d events of 50 rows, of which a poll reads few again", n)
	}
	for range 2 {
		if _, err := snapshot.try(t.Context()); !errors.Is(err, observer.ErrColumnsChanged) || !strings.Contains(err.Error(), "was added") {
			t.Fatalf("a column of all rows: %v", err)
		}
	}
	if n := len(snapshot.db.Events("orders")); n != 30 {
		t.Fatalf("%d events of a stream that has stopped, want the 30 of before", n)
	}
	snapshot.db.Accept("orders")
	for range 2 {
		snapshot.poll(t)
	}
	if n := len(snapshot.db.Events("orders")); n != 80 {
		t.Errorf("%d events, want two of each of 30 rows and one of each of 20", n)
	}
}

// otherColumnOrder makes the table anew with its columns in another order, in which no value
// differs: it makes no event, also behind a column that was added and after a reset.
func otherColumnOrder(t *testing.T, f Fixture) {
	create := func(columns string) {
		f.exec("CREATE TABLE goods (" + columns + ")")
		for i := range 15 {
			f.exec(fmt.Sprintf("INSERT INTO goods (order_id, status, updated_at) VALUES (%d, 'a', '%s')", i+1, second(i)))
		}
	}
	const id, status, stamp = "order_id {integer} PRIMARY KEY", "status {text}", "updated_at {timestamp} NOT NULL"
	create(id + ", " + status + ", " + stamp)
	all, named, timeline := f.polls(observer.DetectSnapshot), f.polls(observer.DetectSnapshot), f.polls(observer.DetectChange)
	named.spec.Query.Columns = []string{"status", "updated_at"}
	for _, p := range []*polls{all, named, timeline} {
		p.spec.Query.Table = "goods"
	}
	poll := func(what string, perRow int) {
		for name, p := range map[string]*polls{"all columns": all, "named columns": named, "by timestamp": timeline} {
			p.poll(t)
			want := 15 * perRow
			if p == named {
				want = 15
			}
			if n := len(p.db.Events("orders")); n != want {
				t.Errorf("%s, %s: %d events, want %d", what, name, n, want)
			}
		}
	}
	poll("the first poll", 1)
	f.exec("DROP TABLE goods")
	create(stamp + ", " + status + ", " + id)
	named.spec.Query.Columns = []string{"updated_at", "status"}
	timeline.db.Reset("orders")
	all.db.Reset("orders")
	poll("another order", 1)

	f.exec("DROP TABLE goods")
	create("carrier {text}, " + id + ", " + status + ", " + stamp)
	if _, err := all.try(t.Context()); !errors.Is(err, observer.ErrColumnsChanged) {
		t.Fatalf("an added column: %v", err)
	}
	all.db.Accept("orders")
	timeline.db.Reset("orders")
	poll("an added column", 2)
	f.exec("DROP TABLE goods")
	create(stamp + ", " + id + ", carrier {text}, " + status)
	timeline.db.Reset("orders")
	poll("an added column elsewhere", 2)
}

// leftOutColumn leaves a column out for one poll and takes it in again, as a configuration that
// was rolled back: rows that were not read meanwhile make no event when they are read again.
func leftOutColumn(t *testing.T, f Fixture) {
	f.exec("CREATE TABLE goods (order_id {integer} PRIMARY KEY, status {text}, carrier {text}, updated_at {timestamp} NOT NULL)")
	for i := range 15 {
		f.exec(fmt.Sprintf("INSERT INTO goods (order_id, status, carrier, updated_at) VALUES (%d, 'a', 'c', '%s')", i+1, second(i)))
	}
	p := f.polls(observer.DetectChange)
	p.spec.Query.Table = "goods"
	all := []string{"order_id", "status", "carrier", "updated_at"}
	for _, columns := range [][]string{all, {"order_id", "status", "updated_at"}, all} {
		p.spec.Query.Columns = columns
		p.poll(t)
	}
	before := len(p.db.Events("orders"))
	p.db.Reset("orders")
	p.poll(t)
	if n := len(p.db.Events("orders")); n != before {
		t.Errorf("%d events, then %d", before, n)
	}
}
