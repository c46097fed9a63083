package source

import (
	"strconv"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/fn"
)

const (
	// SampledRows bounds a sample: the last rows by the primary key.
	SampledRows = 1000
	// zeroBefore is the end, in seconds since 1970, of the times that programs write for
	// none, such as 1900-01-01.
	zeroBefore = 365 * 24 * 60 * 60
)

// Sampled is what a sample says of a column.
type Sampled struct {
	// Rows is how many rows the sample has. 0 means that there is none, or that the table
	// is empty.
	Rows int
	// Empty is how many of them have NULL or a time before 1971, Distinct how many seconds
	// the others have.
	Empty, Distinct int
	// Newest is the latest time; zero without any.
	Newest time.Time
}

// AddSample fills in the Sampled of all Times. Each row has a cell for each, behind a first
// one; read returns zero for what is no time. Fewer than [SampledRows] rows are all that
// the table has, as many disprove a smaller number.
func AddSample[C any](t *Table, rows [][]C, read func(C) time.Time) {
	switch {
	case len(rows) < SampledRows:
		t.Rows, t.Counted = int64(len(rows)), true
	case t.Rows < SampledRows:
		t.Rows, t.Analyzed = -1, false
	}
	for n := range t.Times {
		s := Sampled{Rows: len(rows)}
		distinct := make(map[int64]bool)
		for _, row := range rows {
			at := read(row[n+1])
			if at.Unix() < zeroBefore {
				s.Empty++
				continue
			}
			distinct[at.Unix()] = true
			if at.After(s.Newest) {
				s.Newest = at
			}
		}
		s.Distinct = len(distinct)
		t.Times[n].Sampled = s
	}
}

// ReadSeconds reads the seconds since 1970; nil is NULL.
func ReadSeconds(cell []byte) time.Time {
	seconds, err := strconv.ParseInt(string(cell), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// SampleItems are what a sample of a table selects, where item is what it does of a column,
// and the order by its key from the end. Columns are those of the alias q.
func (t *Table) SampleItems(quote, item func(name string) string) (items, order string) {
	selected, by := []string{"1"}, fn.Each(t.Key, func(name string) string { return "q." + quote(name) + " DESC" })
	selected = append(selected, fn.Each(t.Times, func(c TimeColumn) string { return item("q." + quote(c.Name)) })...)
	return strings.Join(selected, ", "), strings.Join(by, ", ")
}
