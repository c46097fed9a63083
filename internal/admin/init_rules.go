package admin

import (
	"cmp"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/source"
)

// moment is a column, and when it is judged.
type moment struct {
	source.TimeColumn
	now time.Time
}

// meaning is what a column says by its name, or by what the database does with it.
func (m moment) meaning() source.Meaning {
	switch named := source.MeaningOf(m.Name); {
	case named == source.Business:
		return named
	case m.OnUpdate == source.Yes:
		return source.Changed
	case named == source.Unsaid && m.Default == source.Yes && !m.Date:
		return source.Created
	default:
		return named
	}
}

// refusal is a rule by which no observer that is switched on has a column as its timestamp.
type refusal struct {
	// column is what the documentation says of it.
	column string
	holds  func(m moment) bool
	reason func(m moment) string
}

// refusals are the rules, the worst first. docs/configuration.md shows them and the
// preferences.
var refusals = []refusal{
	{
		column: "no word of its name says that a row was created or changed, or one says a business date, and the database does not set it",
		holds:  func(m moment) bool { return m.meaning() <= source.Unsaid },
		reason: func(m moment) string { return m.Name + " looks like a business date" },
	},
	{
		column: "its default is neither NULL nor the present time, such as `'0000-00-00'` or `now() + 14 days`",
		holds:  func(m moment) bool { return m.OtherDefault },
		reason: func(m moment) string { return "the default of " + m.Name + " is not the present time" },
	},
	{
		column: "a value of the sample is more than a day ahead",
		holds:  func(m moment) bool { return m.Sampled.Newest.Sub(m.now) > 24*time.Hour },
		reason: func(m moment) string { return m.Name + " is ahead of now in a sample" },
	},
	{
		column: "it may be NULL, unless its default is the present time and `ON UPDATE` sets it",
		holds: func(m moment) bool {
			filled := m.Default == source.Yes && m.OnUpdate == source.Yes && m.Sampled.Empty == 0 // But for a NULL on purpose.
			return m.Nullable && !filled
		},
		reason: func(m moment) string { return m.Name + " may be NULL" + m.emptyShare() },
	},
	{
		column: "a value of the sample is NULL or before 1971",
		holds:  func(m moment) bool { return m.Sampled.Empty > 0 },
		reason: func(m moment) string { return m.Name + " is not always set" + m.emptyShare() },
	},
	{
		column: "it says when a row was created, and its default is not the present time",
		holds:  func(m moment) bool { return m.meaning() == source.Created && m.Default != source.Yes },
		reason: func(m moment) string { return "the default of " + m.Name + " is not the present time" },
	},
}

// preference is a rule between columns and between tables.
type preference struct {
	first  string // as the documentation has it
	points func(m moment) int
}

// preferences are the rules, the one that counts most first.
var preferences = []preference{
	{"a column that says when a row was changed, before one that says when it was created", func(m moment) int { return int(m.meaning()) }},
	{"a column that no rule refuses, or one further down", func(m moment) int { n, _ := m.refused(); return n }},
	{"a time of day, before a date alone", func(m moment) int { return points(!m.Date) }},
	{"a newest value of the sample that is at most a day old, before one of at most 30 days, before an older one", moment.recency},
	{"more than one value in the sample", func(m moment) int { return points(m.Sampled.Distinct > 1) }},
	{"`ON UPDATE` or a trigger that sets it, before a default", func(m moment) int {
		return points(m.Kept()) + points(m.OnUpdate == source.Yes || m.Trigger == source.Yes)
	}},
	{"an index that begins with it", func(m moment) int { return points(m.Indexed == source.Yes) }},
	{"the newest value of the sample", func(m moment) int { return int(max(m.Sampled.Newest.Unix(), 0)) }},
	{"the most values in the sample", func(m moment) int { return m.Sampled.Distinct }},
}

func points(good bool) int {
	if good {
		return 1
	}
	return 0
}

// refused returns the number and the reason of the first refusal; the number of all of
// them, and none, for a column that may be chosen.
func (m moment) refused() (n int, reason string) {
	for n, r := range refusals {
		if r.holds(m) {
			return n, r.reason(m)
		}
	}
	return len(refusals), ""
}

func (m moment) recency() int {
	const day = 24 * time.Hour
	switch age := m.now.Sub(m.Sampled.Newest); {
	case m.Sampled.Newest.IsZero(), age > businessLag:
		return 0
	case age > day:
		return 1
	}
	return 2
}

// compareMoments puts the better one first. nil is worse than any.
func compareMoments(a, b *moment) int {
	if a == nil || b == nil {
		return points(a == nil) - points(b == nil)
	}
	for _, p := range preferences {
		if order := cmp.Compare(p.points(*b), p.points(*a)); order != 0 {
			return order
		}
	}
	return 0
}

// emptyShare is empty where no sample was read.
func (m moment) emptyShare() string {
	if m.Sampled.Rows == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d%% of a sample are NULL or before 1971)", (100*m.Sampled.Empty+m.Sampled.Rows-1)/m.Sampled.Rows)
}

// why says why a column was chosen.
func (m moment) why() string {
	text := "says when a row was changed"
	if m.meaning() == source.Created {
		text = "says when a row was created"
	}
	switch {
	case m.OnUpdate == source.Yes:
		text += ", ON UPDATE sets it"
	case m.Trigger == source.Yes:
		text += ", a trigger names it"
	case m.Default == source.Yes:
		text += ", the default is the present time"
	}
	if m.Indexed == source.Yes {
		text += ", indexed"
	}
	return text
}
