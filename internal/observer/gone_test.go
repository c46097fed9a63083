package observer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

func TestSnapshotFindsRowsThatAreGoneAndBack(t *testing.T) {
	t.Parallel()
	for _, adapt := range []func(*observer.Spec){func(*observer.Spec) {}, noTimestamp} {
		s := setup(t, observer.DetectSnapshot, adapt)
		s.put(0, 10)
		s.poll()
		s.src.Delete(key(3))
		s.src.Put(key(4), "b")
		s.poll()
		s.poll()
		s.src.Put(key(3), "a")
		s.poll()
		s.poll()
		equalList(t, "events", s.story()[10:],
			key(4)+" changed 2", key(3)+" gone 2", key(3)+" new 3")
		s.checkLog()
		equal(t, "live rows", len(s.db.Live(stream)), 10)
		equal(t, "last read began at", s.src.Reads()[4], "")
	}
}

func TestGoneEventHoldsTheKey(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, time.May, 4, 3, 2, 1, 0, time.UTC)
	s := setup(t, observer.DetectSnapshot, noTimestamp, func(s *observer.Spec) {
		s.Query.Key = []string{"warehouse", "sku"}
		s.Now = func() time.Time { return now }
	})
	gone := observer.JoinKey([]string{"A/1", `<"x">`})
	s.put(0, 5)
	s.src.Put(gone, "a")
	s.poll()
	s.src.Delete(gone)
	s.poll()
	last := s.db.Events(stream)[6]
	equal(t, "subject", last.Subject, gone)
	equal(t, "time", last.Time, now)
	equal(t, "data", string(last.Data), `{"warehouse":"A/1","sku":"<\"x\">"}`)
}

// A row that has gone has the key that its data had, whose names are the source's.
func TestGoneKeyHasItsTypes(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectSnapshot, noTimestamp, func(s *observer.Spec) { s.Query.Key = []string{"id", "code", "day"} })
	typed := func(name, kind string, value events.Encoding, rule observer.KeyRule, width string) observer.KeyColumn {
		return observer.KeyColumn{Column: observer.Column{Name: name, Type: kind}, Encoding: value, Rule: rule, Width: width}
	}
	s.src.SetKeyColumns(
		typed("ID", "bigint", events.EncodingNumber, "", ""),
		typed("CODE", "char", "", observer.KeyBlanks, "length 4"),
		typed("DAY", "timestamp", events.EncodingUTC, observer.KeyFraction, "precision 3"))
	gone := observer.JoinKey([]string{"9223372036854775807", "ä", "2026-03-29 01:30:00.5"})
	s.put(0, 5)
	s.src.Put(gone, "a")
	s.poll()
	s.src.Delete(gone)
	s.poll()
	equal(t, "data", string(s.db.Events(stream)[6].Data), `{"ID":9223372036854775807,"CODE":"ä   ","DAY":"2026-03-29T01:30:00.500Z"}`)
}

// A row whose data gets other columns of its key has not changed.
func TestKeyBesideTheDataIsNoChange(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectSnapshot, noTimestamp)
	row := func(data, more string) observer.Row {
		r := observer.Row{Key: "1", Data: []byte(data + more + "}")}
		if more != "" {
			r.Asked = len(data)
		}
		return r
	}
	s.src.Add(row(`{"status":"a"`, ""))
	s.poll()
	s.src.Delete("1")
	s.src.Add(row(`{"status":"a"`, `,"id":1`))
	s.poll()
	equalList(t, "events", s.story(), "1 new 1")
	s.src.Delete("1")
	s.src.Add(row(`{"status":"b"`, `,"id":1`))
	s.poll()
	equalList(t, "events", s.story(), "1 new 1", "1 changed 2")
	equal(t, "data", string(s.db.Events(stream)[1].Data), `{"status":"b","id":1}`)
}

// What was accepted stays so when the data of a poison row gets its key.
func TestPoisonIsRecognisedWithoutTheKey(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectSnapshot, noTimestamp, func(s *observer.Spec) { s.ChunkRows = 1000 })
	poison := func(more string) {
		for i := range 30 {
			s.src.Delete(key(i))
			r := observer.Row{Key: key(i), Data: []byte(`{"v":null` + more + `}`), Err: errors.New("column v cannot be read")}
			if more != "" {
				r.Asked = len(`{"v":null`)
			}
			s.src.Add(r)
		}
	}
	poison("")
	if _, err := s.tryPoll(); !errors.Is(err, observer.ErrMostlyPoison) {
		t.Fatal(err)
	}
	s.db.Accept(stream)
	s.poll()
	poison(`,"id":1`)
	s.poll()
	equal(t, "poison rows", len(s.db.Dead(stream)), 30)
}

func TestTextsThatLookLikeJSONStayTexts(t *testing.T) {
	t.Parallel()
	form := observer.KeyForm{{Column: observer.Column{Name: "id"}, Encoding: events.EncodingAny}}
	for part, want := range map[string]string{
		"true": `"true"`, "null": `"null"`, "[1]": `"[1]"`, `{"a":1}`: `"{\"a\":1}"`, `"q"`: `"\"q\""`, "ShipInf": `"ShipInf"`, "Inf": `"Inf"`, "": `""`,
		"+Inf": `"Infinity"`, "-Inf": `"-Infinity"`, "1.50": "1.50", "-7": "-7", "007": `"007"`,
	} {
		equal(t, part, string(form.Object([]string{"id"}, part)), `{"id":`+want+`}`)
	}
}

// A scan collects at most 20 chunks of missing rows at a time; here are more.
func TestManyRowsGoneInChunks(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectSnapshot, noTimestamp, func(s *observer.Spec) { s.MaxGone = 1 })
	s.put(0, 200)
	s.poll()
	for i := range 199 {
		s.src.Delete(key(i))
	}
	equal(t, "events", s.poll().Events, 199)
	equalList(t, "live rows", s.db.Live(stream), key(199))
	for _, ch := range s.db.Chunks(stream) {
		if len(ch.Events) > 3 {
			t.Fatalf("chunk of %d events", len(ch.Events))
		}
	}
	s.checkLog()
}

func TestMassDisappearanceIsNotBelieved(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		live, missing int
		maxGone       float64
		refused       bool
	}{
		"at the limit":            {100, 20, 0, false},
		"above the limit":         {100, 21, 0, true},
		"a few":                   {11, 10, 0, false},
		"more than a few":         {20, 11, 0, true},
		"two of few":              {8, 2, 0, false},
		"own limit":               {100, 25, 0.25, false},
		"all but one, without":    {20, 19, 1, false},
		"an empty read":           {20, 20, 1, true},
		"an empty read of a row":  {1, 1, 0.5, true},
		"nothing live, none read": {0, 0, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectSnapshot, noTimestamp, func(s *observer.Spec) { s.MaxGone = test.maxGone })
			s.put(0, test.live)
			s.poll()
			for i := range test.missing {
				s.src.Delete(key(i))
			}
			_, err := s.tryPoll()
			equal(t, fmt.Sprintf("refused (%v)", err), errors.Is(err, observer.ErrMassDisappearance), test.refused)
			live := test.live - test.missing
			if test.refused {
				live = test.live
			}
			equal(t, "live rows", len(s.db.Live(stream)), live)
		})
	}
}

func TestMassDisappearanceKeepsTheRestOfThePoll(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectSnapshot, noTimestamp)
	s.put(0, 30)
	s.poll()
	for i := range 15 {
		s.src.Delete(key(i))
	}
	s.put(100, 10)
	_, err := s.tryPoll()
	if !errors.Is(err, observer.ErrMassDisappearance) || !strings.Contains(err.Error(), "15 of 30 live rows") {
		t.Fatalf("got %v", err)
	}
	equal(t, "live rows", len(s.db.Live(stream)), 40)
}

// An emptied table makes events of its rows once a person has said that it is
// true, and not a second time.
func TestEmptiedTableIsAccepted(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectSnapshot, noTimestamp)
	s.put(0, 8)
	s.poll()
	empty := func() {
		for i := range 8 {
			s.src.Delete(key(i))
		}
	}
	empty()
	for range 3 {
		_, err := s.tryPoll()
		if !errors.Is(err, observer.ErrMassDisappearance) || !strings.Contains(err.Error(), "`observerd observers accept orders`") {
			t.Fatalf("got %v", err)
		}
	}
	equal(t, "commits", len(s.db.Chunks(stream)), 5) // three of rows, one of the time that took, one of the refusal
	r, err := observer.DecodeRefusal(s.db.Cursor(stream).Refusal)
	if err != nil || r.Kind != observer.RefusalGone || r.Rows != 8 || !strings.Contains(r.Text, "8 of 8 live rows are gone") {
		t.Fatalf("refused %+v, %v", r, err)
	}
	s.db.Accept(stream)
	// It is cut off, and goes on.
	if _, err := s.observer().Poll(t.Context(), s.src, &dying{s.db.Acquire(), 1}); err == nil {
		t.Fatal("did not die")
	}
	s.poll()
	equal(t, "live rows", len(s.db.Live(stream)), 0)
	equal(t, "events", len(s.checkLog()), 8)

	s.put(0, 8)
	s.poll()
	empty()
	if _, err := s.tryPoll(); !errors.Is(err, observer.ErrMassDisappearance) {
		t.Fatalf("once more: %v", err)
	}
}

func TestNothingIsGoneAfterABrokenRead(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectSnapshot, noTimestamp, func(s *observer.Spec) { s.MaxGone = 1 })
	s.put(0, 10)
	s.poll()
	s.src.Step = failAt("next", 8)
	_, err := s.tryPoll()
	if !errors.Is(err, errBroken) {
		t.Fatalf("got %v, want %v", err, errBroken)
	}
	equal(t, "live rows", len(s.db.Live(stream)), 10)
}

func TestPoisonRowIsNotGone(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectSnapshot, noTimestamp)
	s.put(0, 5)
	s.poll()
	s.src.Delete(key(2))
	bad := observertest.At(key(2), "a", 0)
	bad.Err = errBad
	s.src.Add(bad)
	s.poll()
	equal(t, "live rows", len(s.db.Live(stream)), 5)
	equal(t, "poison rows", len(s.db.Dead(stream)), 1)
}

func TestNothingIsGoneInAPollThatEndedAtItsLimit(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectSnapshot, noTimestamp, func(s *observer.Spec) { s.MaxChanged = 4 })
	s.put(0, 4)
	s.poll()
	s.src.Delete(key(0))
	s.put(10, 5)
	s.poll()
	equal(t, "live rows at the limit", len(s.db.Live(stream)), 8)
	s.poll()
	equal(t, "live rows in the end", len(s.db.Live(stream)), 8)
	equal(t, "last event", s.story()[9], key(0)+" gone 2")
}
