package sqlite

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// form is what the timestamps of a stream are, as its cursor remembers it; empty for
// not known. A row with one of another form has no place in the order of the others.
type form string

const (
	formText    form = "text"
	formSeconds form = "seconds"
	formMillis  form = "milliseconds"
	formMicros  form = "microseconds"
	formNanos   form = "nanoseconds"
	formJulian  form = "julian days"
)

// unit is that of the numbers of a form; 0 for text and Julian days.
func (f form) unit() time.Duration {
	switch f {
	case formSeconds:
		return time.Second
	case formMillis:
		return time.Millisecond
	case formMicros:
		return time.Microsecond
	case formNanos:
		return time.Nanosecond
	}
	return 0
}

// span is an interval of the order in which SQLite sorts values: numbers, whatever
// their class, before texts. Spans are apart from one another, so a bound keeps the
// rows of other forms out of a read.
type span struct {
	form         form
	from, before any // int64, float64 or string
}

// Numbers up to the end of the year 9999 are of the unit in which they reach it. Julian
// days are those of the years 0 to 9999, which as seconds would be early in 1970.
const (
	secondsFirst  = -62135596800 // the year 1
	secondsBefore = 253402300800 // the year 10000
	julianFirst   = 1721059.5
	julianBefore  = 5373484.5
	julianEpoch   = 2440587.5 // 1970
	daySeconds    = 86400
)

// spans are in the order of SQLite. No text with a digit in front, of which a
// timestamp has four and then a "-", is outside of theirs, and neither bound is one
// that SQLite would take for a number.
var spans = []span{
	{formSeconds, int64(secondsFirst), julianFirst},
	{formJulian, julianFirst, julianBefore},
	{formSeconds, julianBefore, int64(secondsBefore)},
	{formMillis, int64(secondsBefore), int64(secondsBefore * 1e3)},
	{formMicros, int64(secondsBefore * 1e3), int64(secondsBefore * 1e6)},
	{formNanos, int64(secondsBefore * 1e6), float64(1 << 63)},
	{formText, "0000-", ":"},
}

// formOf reads what a cursor remembers. What a later version wrote is not known.
func formOf(text string) form {
	if slices.ContainsFunc(spans, func(s span) bool { return s.form == form(text) }) {
		return form(text)
	}
	return ""
}

// formOfNumber is empty for a number that is no timestamp.
func formOfNumber(v any) form {
	for _, s := range spans {
		if s.form != formText && !lessNumber(v, s.from) && lessNumber(v, s.before) {
			return s.form
		}
	}
	return ""
}

// lessNumber compares as SQLite does: a float64 for both would make neighbours of
// large integers equal.
func lessNumber(a, b any) bool {
	x, whole := a.(int64)
	y, both := b.(int64)
	if whole && both {
		return x < y
	}
	// The largest integers round to 2^63, below which they are.
	return asFloat(a) < asFloat(b) || whole && asFloat(b) == 1<<63
}

func asFloat(v any) float64 {
	if n, ok := v.(int64); ok {
		return float64(n)
	}
	f, ok := v.(float64)
	if !ok {
		return math.NaN()
	}
	return f
}

// within are the conditions that keep a read to the rows of the form, as far as its
// own bounds do not. ts is the qualified column.
func (f form) within(ts string, in observer.Range) []string {
	own := fn.Only(spans, func(s span) bool { return s.form == f })
	var conditions []string
	if len(own) > 0 && in.From == "" {
		conditions = append(conditions, ts+" >= "+literal(own[0].from))
	}
	if len(own) > 0 && in.Before == "" {
		conditions = append(conditions, ts+" < "+literal(own[len(own)-1].before))
	}
	return conditions
}

// without is the condition for rows that have a timestamp of any other form, or what
// is none.
func (f form) without(ts string) string {
	var conditions []string
	open := "" // where the gap begins that the next span of the form ends
	for _, s := range spans {
		if s.form != f {
			continue
		}
		conditions = append(conditions, open+ts+" < "+literal(s.from))
		open = ts + " >= " + literal(s.before) + " AND "
	}
	return strings.Join(append(conditions, strings.TrimSuffix(open, " AND ")), " OR ")
}

func literal(v any) string {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return "'" + v.(string) + "'" //nolint:forcetypeassert // A span has no other bounds.
}

// readable is the condition for what may be a timestamp, within a span.
func (s span) readable(ts string) string {
	if s.form == formText {
		return ts + " GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*'"
	}
	// A column of text compares as text, and a number with it.
	return "typeof(" + ts + ") <> 'text'"
}

// enough rows of a span are as good as more.
const enough = 10_000

// choose finds the form of most rows, the first of equals in this order: text, then
// numbers. What is near zero says "none" as often as "1970", so it counts only where
// there is nothing else. It is empty if no row has a timestamp that can be read.
func (s session) choose(ctx context.Context, p plan) (form, error) {
	ts := "q." + source.Quote(p.selection.TimestampName())
	best, most := form(""), int64(0)
	for i := len(spans) - 1; i >= 0; i-- {
		span := spans[i]
		last := i == 0
		if last && best != "" || p.textOnly && span.form != formText {
			continue
		}
		text := fmt.Sprintf("SELECT count(*)\nFROM (SELECT 1 FROM %[1]s q WHERE %[2]s >= %[3]s AND %[2]s < %[4]s AND %[5]s LIMIT %[6]d)",
			p.from, ts, literal(span.from), literal(span.before), span.readable(ts), enough)
		n, err := column[int64](ctx, s.db, text)
		if err != nil {
			return "", s.overRows(ctx, "look for the form of the timestamps", err, step{sql: text})
		}
		if n[0] > most {
			best, most = span.form, n[0]
		}
	}
	return best, nil
}

// hasAny reports whether rows meet a condition.
func (s session) hasAny(ctx context.Context, p plan, condition string) (bool, error) {
	text := fmt.Sprintf("SELECT 1\nFROM %s q\nWHERE %s\nLIMIT 1", p.from, condition)
	found, err := column[int](ctx, s.db, text)
	return len(found) > 0, s.overRows(ctx, "look for timestamps", err, step{sql: text})
}

// Restate implements [observer.Source]. A text has no more than a date then, of the
// day before: how its stream writes times is not known yet.
func (s *Source) Restate(cursor, name string) string {
	value, ok := parseCursor(cursor)
	f := formOf(name)
	if cursor == "" || f == "" || !ok {
		return cursor
	}
	other, at, ok := parseValue(value, s.options.Location)
	switch {
	case !ok || other == f:
		return cursor
	case f == formText:
		return at.In(s.options.Location).AddDate(0, 0, -1).Format("2006-01-02")
	}
	return f.number(at)
}

// number writes an instant as a cursor of a form that is not text.
func (f form) number(at time.Time) string {
	switch f {
	case formSeconds:
		return strconv.FormatInt(at.Unix(), 10)
	case formMillis:
		return strconv.FormatInt(at.UnixMilli(), 10)
	case formMicros:
		return strconv.FormatInt(at.UnixMicro(), 10)
	case formNanos:
		return strconv.FormatInt(at.UnixNano(), 10)
	case formJulian:
		return strconv.FormatFloat(float64(at.UnixMilli())/1000/daySeconds+julianEpoch, 'f', -1, 64)
	}
	return ""
}
