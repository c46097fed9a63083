package admin

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/source"
)

// reconcileAt is a time at which few databases are busy.
const reconcileAt = "03:00"

// draft is the observer of a table.
type draft struct {
	table   source.Table
	id, typ string
	// time is nil for an observer that reads all rows.
	time                *source.TimeColumn
	detect, reconcileAt string
	// withOverlap says that the source needs an overlap.
	withOverlap bool
	notes       []string
	// doubt is why it is commented out; empty where it is not.
	doubt string
}

func (d *draft) timestamp() string {
	if d.time == nil {
		return ""
	}
	return d.time.Name
}

// event is what its events are called, whatever a built-in type of that name calls its own.
func (d *draft) event() string { return config.OwnEvent(d.typ) }

// rank puts the observers first that are the surest.
func (d *draft) rank() int {
	switch {
	case d.doubt != "":
		return 3
	case d.time == nil:
		return 2
	case !d.time.Kept() || d.time.Indexed != source.Yes:
		return 1
	}
	return 0
}

// newDraft decides how a table is observed.
func newDraft(t source.Table) draft {
	d := draft{table: t, detect: config.DetectSnapshot}
	if d.time = changeTime(t.Times); d.time != nil {
		d.byTime()
	} else {
		d.byRows()
	}
	switch {
	case !isNamed(t):
		d.doubt = "Commented out because no table can be given with such a name: write a query in the place of table."
	case t.View && len(t.Key) == 0:
		d.doubt = "Commented out because a view has no primary key: name the columns that no two rows share at key."
	case len(t.Key) == 0:
		d.doubt = "Commented out because it has no primary key: name the columns that no two rows share at key."
	}
	if d.doubt != "" {
		d.notes = nil
	}
	return d
}

// isNamed reports whether the configuration can name a table.
func isNamed(t source.Table) bool {
	for _, name := range []string{t.Schema, t.Name} {
		if strings.Contains(name, ".") || strings.TrimSpace(name) != name || strings.ContainsFunc(name, unicode.IsControl) {
			return false
		}
	}
	return true
}

// overlap is for sources that show their open transactions, and for the others.
func (d *draft) overlap(exact bool) {
	if d.withOverlap = d.time != nil && !exact; d.withOverlap {
		d.note("The database does not show its open transactions to this account, so a row is lost that is committed more than the time of overlap after its %s: "+
			"write a time that is longer than any transaction.", d.time.Name)
	}
}

// changeTime returns the column that says best when a row was written; nil for none.
func changeTime(times []source.TimeColumn) *source.TimeColumn {
	var best *source.TimeColumn
	most := 0
	for n := range times {
		if s := score(times[n]); s > most {
			best, most = &times[n], s
		}
	}
	return best
}

// meaningOf is what a column says by its name, or by what the database does with it.
func meaningOf(c source.TimeColumn) source.Meaning {
	switch named := source.MeaningOf(c.Name); {
	case c.OnUpdate == source.Yes:
		return source.Changed
	case named == source.Business && c.Default == source.Yes && !c.Date:
		return source.Created
	default:
		return named
	}
}

// score is 0 for a business date.
func score(c source.TimeColumn) int {
	if meaningOf(c) == source.Business {
		return 0
	}
	points := 16 * int(meaningOf(c))
	for worth, good := range map[int]bool{8: !c.Date, 4: c.Kept(), 2: c.Indexed == source.Yes, 1: !c.Nullable} {
		if good {
			points += worth
		}
	}
	return points
}

func (d *draft) note(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

func (d *draft) byTime() {
	c := d.time
	d.detect = config.DetectChange
	if meaningOf(*c) == source.Created {
		d.detect = config.DetectNew
		d.note("%s says when a row was made, so later changes of it are not seen: with a column that says when a row changed, write detect: change; "+
			"without, detect: snapshot reads all rows.", c.Name)
	}
	switch {
	case c.Date:
		d.reconcileAt = reconcileAt
		d.note("Warning: %s is a date without a time of day, and polls do not see a row that is written later with an earlier one; "+
			"reconcile-at looks for such rows once a day.", c.Name)
	case !c.Kept():
		d.reconcileAt = reconcileAt
		d.note("Warning: no default, trigger or ON UPDATE is seen that sets %s, and polls do not see a row that is written later with an earlier one; "+
			"reconcile-at looks for such rows once a day. If every writer sets it, remove that.", c.Name)
	case d.detect == config.DetectChange && c.OnUpdate != source.Yes && c.Trigger != source.Yes:
		d.note("Its default sets %s of a new row; a change is seen if its writer sets it again. If some do not, write detect: snapshot.", c.Name)
	}
	if c.Indexed == source.No {
		d.note("Warning: no index begins with %s, so every poll reads the whole table; one on (%s) would help.",
			c.Name, strings.Join(append([]string{c.Name}, d.table.Key...), ", "))
	}
	if c.Nullable {
		d.note("Rows without %s are read again in every poll; null-timestamp: skip leaves them out.", c.Name)
	}
}

// byRows is for a table without a time of its changes.
func (d *draft) byRows() {
	t := d.table
	why := "no column is seen that says when a row was written"
	if len(t.Times) > 0 {
		names := make([]string, len(t.Times))
		for n, c := range t.Times {
			names[n] = c.Name
		}
		looks := "looks like a business date"
		if len(names) > 1 {
			looks = "look like business dates"
		}
		why += fmt.Sprintf(" (%s %s)", strings.Join(names, ", "), looks)
	}
	switch {
	case t.Rows >= 0 && t.Rows < source.ManyRows:
		d.note("Every poll reads all rows, and notices rows that are gone, because %s and the table is small.", why)
	case t.Rows < 0:
		d.doubt = "Commented out because " + why + ", and its size is not known: detect: snapshot reads all rows in every poll."
	default:
		d.doubt = "Commented out because " + why + ", and detect: snapshot would read all its rows in every poll; " +
			"name such a column at timestamp, with detect: change and reconcile-at."
	}
}
