package events_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
)

func order() events.Event {
	return events.Event{
		ID:     uuid.MustParse("0f8fad5b-d9cb-869f-a165-70867728950e"),
		Stream: "warehouse-orders", Seq: 4711, Type: events.TypeNewOrder, Subject: "ORD-4711",
		Version: 3, Change: events.ChangeNew,
		Time:     time.Date(2026, 3, 29, 1, 30, 0, 120_000_000, time.FixedZone("CEST", 2*3600)),
		Observed: time.Date(2026, 3, 28, 23, 30, 7, 0, time.UTC), Snapshot: true,
		Data: json.RawMessage(`{"order_id":"ORD-4711","total":12.50}`),
	}
}

func TestAppendJSON(t *testing.T) {
	t.Parallel()
	const want = `{"specversion":"1.0","id":"0f8fad5b-d9cb-869f-a165-70867728950e",` +
		`"source":"/observerd/warehouse-orders","type":"NewOrderObservedEvent","subject":"ORD-4711",` +
		`"time":"2026-03-28T23:30:00.120000Z","observedtime":"2026-03-28T23:30:07.000000Z","sequence":"00000000000000004711","rowversion":3,"change":"new","snapshot":true,` +
		`"datacontenttype":"application/json","data":{"order_id":"ORD-4711","total":12.50}}`
	e := order()
	if got := string(events.AppendJSON([]byte("before "), &e)); got != "before "+want {
		t.Errorf("got  %s\nwant %s", got, "before "+want)
	}
}

func TestAppendJSONOfOddEvents(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*events.Event)
		want   string // must be part of the text
		absent string
	}{
		"quotes in the subject":    {func(e *events.Event) { e.Subject = "a\"b\\c" }, `"subject":"a\"b\\c"`, ""},
		"control bytes":            {func(e *events.Event) { e.Subject = "a\nb\x00\x7f" }, `"subject":"a%0Ab%00%7F"`, ""},
		"other control characters": {func(e *events.Event) { e.Subject = "ü\t/\u0085\u00a0" }, `"subject":"ü%09/%C2%85` + "\u00a0\"", ""},
		"noncharacters":            {func(e *events.Event) { e.Subject = "\ufdd0\uffff\U0010fffe\ufffd" }, `"subject":"%EF%B7%90%EF%BF%BF%F4%8F%BF%BE` + "\ufffd\"", ""},
		"texts like escapes":       {func(e *events.Event) { e.Subject = "%0A %250A %2F/%25 %41 %0a" }, `"subject":"%250A %25250A %2F/%25 %41 %0a"`, ""},
		"invalid UTF-8":            {func(e *events.Event) { e.Subject = "a\xffb\xc3" }, "\"subject\":\"a\ufffdb\ufffd\"", ""},
		"no subject":               {func(e *events.Event) { e.Subject = "" }, `"type":`, "subject"},
		"stream that is no name":   {func(e *events.Event) { e.Stream = "a b/\"é" }, `"source":"/observerd/a%20b%2F%22%C3%A9"`, ""},
		"zero time":                {func(e *events.Event) { e.Time = time.Time{} }, `"type":`, `"time"`},
		"not committed":            {func(e *events.Event) { e.Observed = time.Time{} }, `"type":`, "observedtime"},
		"no row of the beginning":  {func(e *events.Event) { e.Snapshot = false }, `"change":"new"`, "snapshot"},
		"year that RFC 3339 lacks": {func(e *events.Event) { e.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, `"type":`, `"time"`},
		"nanoseconds are cut":      {func(e *events.Event) { e.Time = time.Date(2026, 1, 2, 3, 4, 5, 999_999_999, time.UTC) }, `"time":"2026-01-02T03:04:05.999999Z"`, ""},
		"no fraction":              {func(e *events.Event) { e.Time = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }, `"time":"2026-01-02T03:04:05.000000Z"`, ""},
		"no data":                  {func(e *events.Event) { e.Data = nil }, `"snapshot":true}`, "data"},
		"data on several lines":    {func(e *events.Event) { e.Data = json.RawMessage(" {\r\n \"a\": \"b c\"\n}\n") }, `"data":{ "a": "b c"}}`, "\n"},
		"data that is not JSON":    {func(e *events.Event) { e.Data = json.RawMessage(`{"a":`) }, `"datacontenttype":"application/octet-stream","data_base64":"eyJhIjo="`, `"data":`},
		"data that is not UTF-8":   {func(e *events.Event) { e.Data = json.RawMessage("\"\xff\"") }, `"data_base64":"Iv8i"`, `"data":`},
		"the largest sequence":     {func(e *events.Event) { e.Seq = math.MaxInt64 }, `"sequence":"09223372036854775807"`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := order()
			tt.change(&e)
			text := events.AppendJSON(nil, &e)
			if !json.Valid(text) || !utf8.Valid(text) {
				t.Errorf("not valid JSON: %s", text)
			}
			if !strings.Contains(string(text), tt.want) {
				t.Errorf("got %s, want it to hold %s", text, tt.want)
			}
			if tt.absent != "" && strings.Contains(string(text), tt.absent) {
				t.Errorf("got %s, want it without %q", text, tt.absent)
			}
		})
	}
}

// TestAppendJSONNames checks the naming rules of CloudEvents 1.0, section
// "Attribute Naming Convention".
func TestAppendJSONNames(t *testing.T) {
	t.Parallel()
	e := order()
	var attributes map[string]json.RawMessage
	if err := json.Unmarshal(events.AppendJSON(nil, &e), &attributes); err != nil {
		t.Fatal(err)
	}
	for name := range attributes {
		if len(name) > 20 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			t.Errorf("attribute %q breaks the naming rules", name)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	e := order()
	good := string(events.AppendJSON(nil, &e))
	for name, text := range map[string]string{
		"nothing":         ``,
		"torn":            good[:len(good)-1],
		"an array":        `[]`,
		"other version":   strings.Replace(good, `"1.0"`, `"0.3"`, 1),
		"no id":           strings.Replace(good, `"id"`, `"ID_"`, 1),
		"foreign source":  strings.Replace(good, `/observerd/`, `/other/`, 1),
		"broken escape":   strings.Replace(good, `warehouse-orders`, `%zz`, 1),
		"no sequence":     strings.Replace(good, `"00000000000000004711"`, `"x"`, 1),
		"no time of day":  strings.Replace(good, `2026-03-28T23:30:00.120000Z`, `yesterday`, 1),
		"version in text": strings.Replace(good, `"rowversion":3`, `"rowversion":"3"`, 1),
	} {
		if _, err := events.Decode([]byte(text)); !errors.Is(err, events.ErrNotEvent) {
			t.Errorf("%s: got %v, want ErrNotEvent", name, err)
		}
	}
}

func TestEncodedID(t *testing.T) {
	t.Parallel()
	e := order()
	text := events.AppendJSON(nil, &e)
	if id, ok := events.EncodedID(text); !ok || id != e.ID {
		t.Errorf("got %v, %v", id, ok)
	}
	for n := range len(text) {
		if !events.MaybeEncoded(text[:n]) {
			t.Fatalf("the first %d bytes are not taken for the beginning of an event", n)
		}
	}
	for _, other := range []string{"x", `{"a":1}`, `{"specversion":"1.0","id":"short"`,
		strings.Replace(string(text), "0f8f", "zzzz", 1), strings.Replace(string(text), "0f8f", "0F8F", 1),
		strings.Replace(string(text), "/observerd/", "/other/", 1)} {
		if _, ok := events.EncodedID([]byte(other)); ok {
			t.Errorf("%q is taken for an event", other)
		}
	}
}

func FuzzAppendJSON(f *testing.F) {
	e := order()
	f.Add(e.ID[:], e.Stream, e.Seq, e.Type, e.Subject, e.Version, string(e.Change), e.Time.Unix(), int64(e.Time.Nanosecond()), []byte(e.Data))
	f.Add([]byte{}, "\xff/", int64(0), "\"", "\n%0A%2525C2%80\u0080%", int64(-1), "\u2028", int64(1)<<40, int64(1), []byte("{"))
	f.Fuzz(func(t *testing.T, id []byte, stream string, seq int64, typ, subject string, version int64, change string, sec, nano int64, data []byte) {
		e := events.Event{
			Stream: stream, Seq: seq & math.MaxInt64, Type: typ, Subject: subject, Version: version,
			Change: events.Change(change), Time: time.Unix(sec, nano).UTC(), Data: data,
		}
		copy(e.ID[:], id)
		text := events.AppendJSON(nil, &e)
		if !json.Valid(text) || !utf8.Valid(text) || bytes.ContainsAny(text, "\r\n") {
			t.Fatalf("not one line of valid JSON: %q", text)
		}
		var attributes struct{ Subject string }
		if err := json.Unmarshal(text, &attributes); err != nil || strings.ContainsFunc(attributes.Subject, unicode.IsControl) {
			t.Fatalf("a subject that CloudEvents forbids: %q", text)
		}
		got, err := events.Decode(text)
		if err != nil {
			t.Fatalf("decode %q: %v", text, err)
		}
		if want := faithful(e); !equal(got, want) {
			t.Fatalf("got %+v, want %+v, from %q", got, want, text)
		}
		if again := events.AppendJSON(nil, &got); !bytes.Equal(again, text) {
			t.Fatalf("encoded again: %q, was %q", again, text)
		}
		if short, ok := events.EncodedID(text); !ok || short != e.ID {
			t.Fatalf("got the id %v, %v", short, ok)
		}
	})
}

// faithful returns the event without what the encoding gives up on purpose.
func faithful(e events.Event) events.Event {
	for _, text := range []*string{&e.Type, &e.Subject, (*string)(&e.Change)} {
		*text = strings.ToValidUTF8(*text, "\ufffd")
	}
	e.Time = e.Time.Truncate(time.Microsecond)
	if e.Time.Year() < 0 || e.Time.Year() > 9999 {
		e.Time = time.Time{}
	}
	if json.Valid(e.Data) && utf8.Valid(e.Data) {
		e.Data = json.RawMessage(strings.NewReplacer("\r", "", "\n", "").Replace(strings.Trim(string(e.Data), " \t\r\n")))
	}
	return e
}

// equal compares two events; no data and empty data are the same.
func equal(a, b events.Event) bool {
	if !bytes.Equal(a.Data, b.Data) || !a.Time.Equal(b.Time) {
		return false
	}
	a.Data, b.Data, a.Time, b.Time = nil, nil, time.Time{}, time.Time{}
	return reflect.DeepEqual(a, b)
}

func BenchmarkAppendJSON(b *testing.B) {
	e := order()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = events.AppendJSON(buf[:0], &e)
	}
}

// TestIDsOfEpochs holds ids to what they were before there were epochs, and those
// of epochs apart.
func TestIDsOfEpochs(t *testing.T) {
	t.Parallel()
	id := func(epoch, version int64) string {
		return events.NewID("orders", epoch, "ORD-1", version, []byte("hash")).String()
	}
	const first = "dd48e6bb-a08a-85dc-99f7-099b8389b26a"
	if got := id(0, 1); got != first {
		t.Errorf("the id of epoch 0 is %s, was %s", got, first)
	}
	seen := make(map[string]bool)
	for epoch := range int64(12) {
		for version := range int64(12) {
			seen[id(epoch, version)] = true
		}
	}
	if len(seen) != 12*12 {
		t.Errorf("%d ids of %d", len(seen), 12*12)
	}
}
