package events_test

import (
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/observerd/observerd/internal/events"
)

func TestLines(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 29, 3, 30, 0, 123999999, time.FixedZone("CEST", 7200))
	batch := []events.Event{
		{Stream: "orders", Seq: 9, Type: "NewOrder", Change: events.ChangeNew, Version: 1, Observed: at, Snapshot: true, Subject: "Ä-1", Data: []byte(`{"id": "Ä-1"}`)},
		{Stream: "stock-of-berlin", Seq: 10, Type: "Stock", Change: events.ChangeChanged, Version: 12, Observed: at, Subject: "B/1", Data: []byte("{\"a\":\n1}")},
		{Stream: "orders", Seq: 11, Type: "NewOrder", Change: events.ChangeGone, Version: 2, Subject: strings.Repeat("x", 45), Data: []byte(`no JSON`)},
		{Stream: "orders", Seq: 12, Type: "NewOrder", Change: events.ChangeNew, Version: 1, Observed: at, Subject: ""},
	}
	var lines events.Lines
	lines.Widen(batch)
	got := []string{string(lines.AppendHeading(nil))}
	for i := range batch {
		got = append(got, string(lines.Append(nil, &batch[i])))
	}
	want := []string{
		`OBSERVED                  OBSERVER         SEQUENCE  TYPE      CHANGE        SUBJECT                                   DATA`,
		`2026-03-29T01:30:00.123Z  orders           9         NewOrder  new snapshot  Ä-1                                       {"id":"Ä-1"}`,
		`2026-03-29T01:30:00.123Z  stock-of-berlin  10        Stock     changed v12   B/1                                       {"a":1}`,
		`-                         orders           11        NewOrder  gone v2       xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx  (7 bytes that are no JSON)`,
		`2026-03-29T01:30:00.123Z  orders           12        NewOrder  new           -                                         -`,
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
}

// TestLinesOfStrangers has values that end lines, part columns, and would have a
// terminal do something; and data that is long.
func TestLinesOfStrangers(t *testing.T) {
	t.Parallel()
	const hostile = "\x1b[2J\r\n\t\u009b1m\u202e\U000e0001\x7f"
	var lines events.Lines
	line := string(lines.Append(nil, &events.Event{Stream: "s", Subject: hostile + "\xff", Data: []byte("{\"a\":\"\u009b1m\u202e\U000e0001\x7f\"}")}))
	if strings.ContainsFunc(line, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) }) || strings.Contains(line, "\n") {
		t.Errorf("a terminal obeys %q", line)
	}
	for _, shown := range []string{`  \u001b[2J\u000d\n\t\u009b1m\u202e\udb40\udc01\u007f\ufffd  `, `{"a":"\u009b1m\u202e\udb40\udc01\u007f"}`} {
		if !strings.Contains(line, shown) {
			t.Errorf("%q lacks %s", line, shown)
		}
	}
	for _, size := range []int{199, 200, 201, 202, 5000} {
		data := `{"a":"` + strings.Repeat("x", size-10) + `é"}`
		line := string(lines.Append(nil, &events.Event{Data: []byte(data)}))
		_, inside, _ := strings.Cut(line, "{")
		shown, note, cut := strings.Cut("{"+inside, "… ")
		switch {
		case cut != (len(data) > 200), !cut && shown != data:
			t.Errorf("%d bytes of data: %q", len(data), line)
		case cut && (!strings.HasPrefix(data, shown) || len(shown) < 199 || len(shown) > 200 || !utf8.ValidString(shown) || note != "("+strconv.Itoa(len(data))+" bytes)"):
			t.Errorf("%d bytes of data: %q, %q", len(data), shown, note)
		}
	}
}
