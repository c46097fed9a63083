package sourcetest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// hashSecret is the key of the hashes of these tests.
const hashSecret = "a secret that is long enough to be one"

// hashed is what docs/events.md says of the hash of a text.
func hashed(text string) string {
	mac := hmac.New(sha256.New, []byte(hashSecret))
	mac.Write([]byte(text))
	return "hmac-sha256:" + hex.EncodeToString(mac.Sum(nil))
}

var aHash = regexp.MustCompile(`^hmac-sha256:[0-9a-f]{64}$`)

// canary is in each value that is not to leave the source.
const canary = "c4n4ry"

// people is a query of a table whose rows are not for everybody.
func people() observer.Query {
	return observer.Query{
		Stream: "people", Table: "people", Key: []string{"id"}, Timestamp: "updated_at",
		Redact:  map[string]observer.Redaction{"Email": observer.RedactHash, "pay": observer.RedactHash, "phone": observer.RedactMask, "note": observer.RedactDrop},
		HashKey: observer.NewHashKey(hashSecret),
	}
}

func (f Fixture) people() {
	f.exec("CREATE TABLE people (id {integer} NOT NULL, email {name} NOT NULL, pay {decimal}, phone {text}, note {text}, updated_at {timestamp}, PRIMARY KEY (email, id))",
		"INSERT INTO people VALUES (1, 'c4n4ry@x/y%', 12.5, '+49 c4n4ry', 'c4n4ry', '2024-05-01 10:00:00')",
		"INSERT INTO people VALUES (2, 'c4n4ry@x/y%', 12.5, NULL, 'c4n4ry', '2024-05-01 10:00:00')",
		"INSERT INTO people VALUES (3, 'c4n4ry', NULL, '', NULL, NULL)")
}

// redactedColumns shows what arrives of columns that are redacted.
func redactedColumns(t *testing.T, f Fixture) {
	f.people()
	table := people()
	query, chosen := table, table
	query.Table, query.SQL = "", "SELECT * FROM people"
	chosen.Columns = []string{"phone", "email", "pay", "updated_at"}
	cursors := make(map[string]string)
	for _, r := range f.read(t, observer.Query{Table: "people", Key: []string{"id"}, Timestamp: "updated_at"}, "") {
		cursors[r.key] = r.cursor
	}
	for name, q := range map[string]observer.Query{"table": table, "query": query, "columns": chosen} {
		schema := f.schema(t, q)
		rows := f.read(t, q, "")
		if len(rows) != 3 {
			t.Fatalf("%s: %d rows, want 3", name, len(rows))
		}
		for _, r := range rows {
			schema.check(t, name, events.ChangeNew, r.sent)
			if r.cursor != cursors[r.key] {
				t.Errorf("%s: the cursor of row %s is %q, want %q", name, r.key, r.cursor, cursors[r.key])
			}
			email, pay := hashed("c4n4ry@x/y%"), `"`+hashed("12.5")+`"`
			if r.key == "3" {
				email, pay = hashed(canary), "null"
			}
			for _, want := range []string{`"email":"` + email + `"`, `"pay":` + pay, `"phone":"***"`} {
				if data := strings.ToLower(r.sent); r.err != nil || !strings.Contains(data, want) || strings.Contains(data, `"note"`) || strings.Contains(data, canary) {
					t.Errorf("%s: row %s is %s, %v, want %s in it and no note", name, r.key, r.sent, r.err, want)
				}
			}
		}
	}
}

// redactedKey shows that no other text of a hashed key is to be had, not even the place
// from which a read would go on.
func redactedKey(t *testing.T, f Fixture) {
	f.people()
	q := people()
	q.Key = []string{"email", "id"}
	plain := q
	plain.Redact = nil
	if order, err := f.Source.KeyOrder(t.Context(), plain); err != nil || order == "" {
		t.Fatalf("KeyOrder of the plain key = %q, %v, want one", order, err)
	}
	rows, err := f.Source.Read(t.Context(), q, observer.Range{})
	if err != nil {
		t.Fatal(err)
	}
	got := drain(t, rows)
	slices.SortFunc(got, func(a, b row) int { return strings.Compare(a.key[len(a.key)-1:], b.key[len(b.key)-1:]) })
	form := observer.KeyForm(rows.KeyColumns())
	schema := f.schema(t, q)
	for i, email := range []string{"c4n4ry@x/y%", "c4n4ry@x/y%", canary} {
		if want := fmt.Sprintf("%s/%d", hashed(email), i+1); got[i].key != want || !strings.Contains(strings.ToLower(got[i].sent), `"email":"`+hashed(email)+`"`) {
			t.Errorf("row = %+v, want the key %s, and the same hash in the data", got[i], want)
		}
		gone := form.Object(q.Key, got[i].key)
		if want := fmt.Sprintf(`{"email":%q,"id":%d}`, hashed(email), i+1); strings.ToLower(string(gone)) != want {
			t.Errorf("once it has gone: %s, want %s", gone, want)
		}
		schema.check(t, "gone", events.ChangeGone, string(gone))
	}
	if text := form.Encode() + observer.EncodeColumns(rows.Columns()); strings.Contains(text, hashSecret) || form[0].Type == "" {
		t.Errorf("the form of the key is %s", text)
	}
	order, err := f.Source.KeyOrder(t.Context(), q)
	if err != nil || order != "" || rows.KeyOrder() != "" {
		t.Errorf("KeyOrder = %q and %q, %v, want none", order, rows.KeyOrder(), err)
	}
	for _, in := range []observer.Range{{ByKey: true}, {From: got[0].cursor, Key: got[0].key}} {
		if _, err := f.Source.Read(t.Context(), q, in); observer.ClassOf(err) != observer.ClassRetry {
			t.Errorf("%+v: %v, want a read that is refused", in, err)
		}
	}
	d, err := f.Source.Describe(t.Context(), q)
	if err != nil || d.KeyOrdered || d.KeyUnique != source.Yes {
		t.Errorf("Describe = %+v, %v, want a unique key without an order", d, err)
	}
}

// redactedFaults has rows that cannot be read, and columns that are not there.
func redactedFaults(t *testing.T, f Fixture) {
	f.people()
	f.exec("INSERT INTO people VALUES (4, 'c4n4ry4', NULL, '" + strings.Repeat("c4n4ry", 300) + "', NULL, '2024-05-01 10:00:01')")
	if f.Poison != "" {
		f.exec("INSERT INTO people VALUES (5, " + f.Poison + ", NULL, NULL, NULL, '2024-05-01 10:00:02')")
	}
	q := people()
	q.MaxRowBytes = 1024
	q.Redact["phone"] = observer.RedactHash
	var faults []string
	for _, r := range f.read(t, q, "") {
		if r.err != nil {
			faults = append(faults, r.key+" "+strings.ToLower(r.err.Error()))
		}
		if strings.Contains(fmt.Sprint(r), canary) {
			t.Errorf("row %+v tells a value", r)
		}
	}
	want := []string{"4 the row is larger than 1024 bytes", "5 column email " + strings.ToLower(noText)}
	if f.Poison == "" {
		want = want[:1]
	}
	if !slices.Equal(faults, want) {
		t.Errorf("faults %q, want %q", faults, want)
	}
	q.Redact["emial"] = observer.RedactMask
	var missing *source.MissingError
	if _, err := f.Source.Describe(t.Context(), q); !errors.As(err, &missing) || missing.Name != "emial" || !strings.EqualFold(strings.Join(missing.Nearest, " "), "email") {
		t.Errorf("Describe = %v, want that emial does not exist and email is like it", err)
	}
	q = people()
	q.Key = []string{"id", "phone"}
	if _, err := f.Source.Read(t.Context(), q, observer.Range{}); err == nil || !strings.Contains(err.Error(), "is of the key") {
		t.Errorf("Read with a masked key = %v", err)
	}
	q = people()
	q.HashKey = nil
	if _, err := f.Source.Read(t.Context(), q, observer.Range{}); err == nil || !strings.Contains(err.Error(), "no key to hash") {
		t.Errorf("Read without a key = %v", err)
	}
}

// hashes shows that a value of any type has the hash of the text that it has in a key, as
// data and as a key.
func (w written) hashes(t *testing.T) {
	t.Helper()
	texts := make(map[int]string)
	if !w.Unkeyed {
		w.each(t, observer.Query{Table: w.table, Key: []string{"v"}, Columns: []string{"id"}}, func(i int, r row) {
			if r.err == nil {
				texts[i] = r.key
			}
		})
	}
	redact := map[string]observer.Redaction{"v": observer.RedactHash}
	data := observer.Query{Table: w.table, Key: []string{"id"}, Columns: []string{"v"}, Redact: redact, HashKey: observer.NewHashKey(hashSecret)}
	w.each(t, data, func(i int, r row) {
		got := strings.TrimSuffix(strings.TrimPrefix(r.data, `{"v":`), "}")
		text, keyed := texts[i]
		switch isNull := i == 0 || w.said[i].Data == nil; {
		case r.err != nil:
		case isNull && got == "null":
		case keyed && got != `"`+hashed(text)+`"`, !aHash.MatchString(strings.Trim(got, `"`)):
			t.Errorf("the hash of %s is %s, want that of %q", w.value(i), short(got), short(text))
		}
	})
	if w.Unkeyed {
		return
	}
	key := data
	key.Key, key.Columns = []string{"v"}, []string{"id"}
	w.each(t, key, func(i int, r row) {
		if text, keyed := texts[i]; keyed && (r.err != nil || r.key != hashed(text)) {
			t.Errorf("the hashed key of %s is %q, %v, want that of %q", w.value(i), r.key, r.err, short(text))
		}
	})
}

// hashedKeys polls rows whose keys are hashed, more of one timestamp, and without one,
// than a statement has time for.
func hashedKeys(t *testing.T, f Fixture) {
	f.people()
	const tied = 30
	for i := range tied {
		f.exec(fmt.Sprintf("INSERT INTO people VALUES (%d, 'c4n4ry', %d, NULL, NULL, %s)", i+10, i, []string{"NULL", "'2024-05-01 10:00:01'"}[i%2]))
	}
	streams := map[observer.Detect]*polls{observer.DetectChange: f.polls(observer.DetectChange), observer.DetectSnapshot: f.polls(observer.DetectSnapshot)}
	for _, p := range streams {
		p.spec.Query = people()
		p.spec.Query.Stream, p.spec.Query.Key = "orders", []string{"email", "id"}
		p.spec.StatementTime = time.Nanosecond
		p.pollAll(t)
		p.pollAll(t)
	}
	f.exec("UPDATE people SET pay = 1000, updated_at = "+f.Now+" WHERE id = 10", "DELETE FROM people WHERE id = 11")
	for detect, p := range streams {
		p.pollAll(t)
		p.pollAll(t)
		said := make(map[string]int)
		for _, e := range p.db.Events("orders") {
			said[string(e.Change)]++
			text := string(events.AppendJSON(nil, &e))
			if !strings.HasPrefix(e.Subject, events.HashPrefix) || strings.Contains(text, canary) {
				t.Errorf("%s: event %s tells a value", detect, text)
			}
		}
		want := map[string]int{"new": tied + 3, "changed": 1, "gone": 1}
		if detect == observer.DetectChange {
			delete(want, "gone")
		}
		if !maps.Equal(said, want) {
			t.Errorf("%s: events %v, want %v", detect, said, want)
		}
		// Another redaction of data is a choice, another key of the key makes other keys.
		p.spec.Query.Redact = maps.Clone(p.spec.Query.Redact)
		p.spec.Query.Redact["phone"], p.spec.Query.Redact["pay"] = observer.RedactDrop, observer.RedactMask
		p.poll(t)
		for name, other := range map[string]func(q *observer.Query){
			"another key": func(q *observer.Query) { q.HashKey = observer.NewHashKey(hashSecret + "!") },
			"no hash":     func(q *observer.Query) { delete(q.Redact, "Email") },
		} {
			q := p.spec.Query
			p.spec.Query.Redact = maps.Clone(q.Redact)
			other(&p.spec.Query)
			before := len(p.db.Events("orders"))
			if _, err := p.try(t.Context()); !errors.Is(err, observer.ErrQueryChanged) || !strings.Contains(err.Error(), "--forget") || len(p.db.Events("orders")) != before {
				t.Errorf("%s, %s: %v, want that the rows are to be forgotten", detect, name, err)
			}
			p.spec.Query = q
		}
	}
}
