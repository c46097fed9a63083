package admin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/source"
)

// reconcileAt is a time at which few databases are busy.
const reconcileAt = "03:00"

// draft is the observer of a table.
type draft struct {
	table   source.Table
	id, typ string
	// best is the best column; nil without any. time is the same where it is the timestamp,
	// and nil for an observer that reads all rows.
	best, time          *moment
	detect, reconcileAt string
	// unread says that no sample of the table could be read.
	unread bool
	// withOverlap says that the source needs an overlap.
	withOverlap bool
	notes       []string
	// doubt is why it is commented out; empty where it is not. reason is what decided, in
	// fewer words.
	doubt, reason string
}

func (d *draft) timestamp() string {
	if d.time == nil {
		return ""
	}
	return d.time.Name
}

// event is what its events are called, whatever a built-in type of that name calls its own.
func (d *draft) event() string { return config.OwnEvent(d.typ) }

// rank puts the observers first that are switched on, and of them those with a timestamp.
func (d *draft) rank() int {
	switch {
	case d.doubt != "":
		return 2
	case d.time == nil:
		return 1
	}
	return 0
}

// compareDrafts puts the better one first.
func compareDrafts(a, b draft) int {
	return cmp.Or(cmp.Compare(a.rank(), b.rank()), compareMoments(a.best, b.best))
}

// newDraft decides how a table is observed.
func newDraft(t source.Table, now time.Time) draft {
	d := draft{table: t, detect: config.DetectSnapshot}
	for _, c := range t.Times {
		if m := (&moment{TimeColumn: c, now: now}); compareMoments(m, d.best) < 0 {
			d.best = m
		}
	}
	if d.best != nil {
		_, d.reason = d.best.refused()
	}
	if d.best != nil && d.reason == "" {
		d.byTime()
	} else {
		d.byRows()
	}
	switch {
	case !isNamed(t):
		d.doubt = "Commented out because table does not accept such a name: use query instead."
		d.reason = "table does not accept such a name"
	case t.View && len(t.Key) == 0:
		d.doubt = "Commented out because a view has no primary key: set key to columns that identify a row."
		d.reason = "a view has no primary key"
	case len(t.Key) == 0:
		d.doubt = "Commented out because it has no primary key: set key to columns that identify a row."
		d.reason = "no primary key"
	}
	if d.doubt != "" {
		d.notes = nil
	}
	return d
}

// isNamed reports whether the configuration can name a table.
func isNamed(t source.Table) bool {
	return !slices.ContainsFunc([]string{t.Schema, t.Name}, func(name string) bool {
		return strings.Contains(name, ".") || strings.TrimSpace(name) != name || strings.ContainsFunc(name, unicode.IsControl)
	})
}

func (d *draft) note(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// detectBy is for an observer by the time of a column.
func (m moment) detectBy() string {
	if m.meaning() == source.Created {
		return config.DetectNew
	}
	return config.DetectChange
}

func (d *draft) byTime() {
	c := d.best
	d.time, d.detect = c, c.detectBy()
	if d.detect == config.DetectNew {
		d.note("%s is the time when a row was created, so later changes are not seen: with a column for the time of a change, use detect: change; "+
			"otherwise detect: snapshot, which reads all rows.", c.Name)
	}
	switch {
	case c.Date:
		d.reconcileAt = reconcileAt
		d.note("Warning: %s is a date without a time of day, and polls miss rows that are written later with an earlier one; "+
			"reconcile-at finds such rows once a day.", c.Name)
	case !c.Kept():
		d.reconcileAt = reconcileAt
		d.note("Warning: no default, trigger or ON UPDATE sets %s, and polls miss rows that are written later with an earlier one; "+
			"reconcile-at finds such rows once a day. Remove it if every writer sets the column.", c.Name)
	case d.detect == config.DetectChange && c.OnUpdate != source.Yes && c.Trigger != source.Yes:
		d.note("The default sets %s of new rows; changes are seen only if writers set it. If some do not, use detect: snapshot.", c.Name)
	}
	if c.Indexed == source.No {
		d.note("Warning: no index begins with %s, so every poll reads the whole table; create one on (%s).",
			c.Name, strings.Join(append([]string{c.Name}, fn.Only(d.table.Key, func(k string) bool { return k != c.Name })...), ", "))
	}
}

// byRows is for a table without a time of its changes that may be chosen.
func (d *draft) byRows() {
	t := d.table
	why := "no column has the time when a row was written"
	switch {
	case d.best == nil:
		d.reason = why
	case d.best.meaning() <= source.Unsaid:
		names := fn.Each(t.Times, func(c source.TimeColumn) string { return c.Name })
		looks := "looks like a business date"
		if len(names) > 1 {
			looks = "look like business dates"
		}
		d.reason = strings.Join(names, ", ") + " " + looks
		why += " (" + d.reason + ")"
	default:
		why = d.reason
	}
	switch {
	case t.Rows >= 0 && t.Rows < source.ManyRows:
		d.note("Every poll reads all rows, and reports deleted ones, because %s and the table is small.", why)
		if d.best != nil {
			d.note("Uncomment the lines below only if each write of a row sets %s to the present time.", d.best.Name)
		}
	case d.best != nil && d.best.meaning() > source.Unsaid:
		d.time, d.detect, d.reconcileAt = d.best, d.best.detectBy(), reconcileAt
		d.doubt = fmt.Sprintf("Commented out because %s, and the table may be large, so that detect: snapshot would read many rows in every poll: "+
			"uncomment it only if each write of a row sets %s to the present time.", why, d.best.Name)
	case t.Rows < 0:
		d.doubt = "Commented out because " + why + ", and its size is not known: detect: snapshot reads all rows in every poll."
	default:
		d.doubt = "Commented out because " + why + ", and detect: snapshot would read all its rows in every poll; " +
			"set timestamp to such a column, with detect: change and reconcile-at."
	}
}
