package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/wiring"
)

// judge returns the faults of a query that its source understands, and advice.
func judge(o config.Observer, d source.Description) []Finding {
	j := judgement{subject: "observer " + o.ID}
	key, where := strings.Join(d.Key, ", "), cmp.Or(d.Table, "the query")
	switch {
	case d.KeyUnique == source.No:
		j.mistake("key %s is not unique in %s; set key to columns that identify a row", key, where)
	case d.KeyUnique == source.Unknown && d.Table != "":
		j.warn("no index keeps the key %s unique in %s; rows that share a key would be taken for versions of one row", key, where)
	}
	if d.Timestamp != "" {
		j.timestamp(o, d, where)
	}
	q, readsAll := wiring.Query(o), d.Timestamp == "" || o.Detect == config.DetectSnapshot
	from := ""
	switch {
	case slices.ContainsFunc(d.Key, func(name string) bool { return q.Redaction(name) == observer.RedactHash }):
		from = "a key that is hashed"
	case d.KeyOneWay != "":
		from = "a key with " + d.KeyOneWay
	}
	switch {
	case from != "" && readsAll:
		j.warn("no read can continue from %s, so one statement reads all of %s, however long that takes", from, where)
	case from != "":
		j.warn("no read can continue from %s, so the rows of %s that share a timestamp have to fit into one poll, and one statement reads those without any", from, where)
	case !readsAll || d.KeyOrdered:
	case d.Table == "":
		j.warn("one statement reads all rows of the query, however long that takes; of a table whose key has an index, a poll reads what it has time for, and the next one continues")
	default:
		j.warn("no index serves the key %[1]s of %[2]s, so one statement reads all of it, however long that takes: "+
			"with an index on (%[1]s), of columns that are NOT NULL, a poll reads what it has time for, and the next one continues", key, where)
	}
	for _, text := range d.Warnings {
		j.warn("%s", text)
	}
	j.subject = "source " + o.Source
	for _, r := range d.Risks {
		j.warn("%s. %s %s", r.Saw, r.Why, r.Do)
	}
	return j.findings
}

// hides says what a business date as timestamp does.
const hides = "polls do not see a row that is written later with an earlier one: " +
	"use a column with the time when the row was written, or reconcile-at, which finds such rows once a day"

// mayHide reports whether nothing finds the rows that an observer has passed.
func mayHide(o config.Observer) bool {
	return o.ReconcileAt == "" && o.Detect != config.DetectSnapshot
}

type judgement struct {
	subject  string
	findings []Finding
}

// timestamp checks the conditions of a query with a timestamp column.
func (j *judgement) timestamp(o config.Observer, d source.Description, where string) {
	if d.TimestampNullable && o.NullTimestamp == string(observer.NullInclude) {
		j.warn("timestamp %s can be NULL in %s; such rows are read again in every poll: "+
			"set null-timestamp: skip to leave them out, or error to have them reported", d.Timestamp, where)
	}
	if d.TimestampDate && mayHide(o) {
		j.warn("timestamp %s is a date without a time of day, as a business date is; "+hides, d.Timestamp)
	}
	if d.OrderIndexed == source.No {
		j.warn("no index serves the order of %s; every poll sorts all of %s: an index on (%s) would help", d.Timestamp, where, strings.Join(d.Order(), ", "))
	}
	if !d.HorizonExact && o.Overlap == nil {
		j.warn("open transactions are not all visible here: set overlap longer than your longest transaction, or rows that commit more than a minute after their %s are missed", d.Timestamp)
	}
}

// judgePlan returns warnings about the plan of a poll.
func judgePlan(o config.Observer, p source.Plan) []Finding {
	j := judgement{subject: "observer " + o.ID}
	for _, text := range p.Warnings {
		j.warn("%s", text)
	}
	for _, table := range p.FullScan {
		switch {
		case o.Timestamp == "":
			j.warn("without a timestamp all of %s is read over and over; a column that says when a row changed, and an index on it, would spare the source that", table)
		case o.Detect == config.DetectSnapshot:
			j.warn("detect: snapshot reads all of %s in every poll; detect: change reads what is new, but notices no row that is gone", table)
		default:
			j.warn("every poll reads all of %s: no index serves the query; one that begins with %s would help", table, o.Timestamp)
		}
	}
	return j.findings
}

// judgeSample refuses an observer most of whose first rows are poison. Those without a
// timestamp come first, and null-timestamp: error reports them on purpose: they count where
// hasDated finds no other.
func judgeSample(o config.Observer, poison []observer.Dead, rows int64, hasDated func() bool) []Finding {
	if 2*int64(len(poison)) <= rows || o.NullTimestamp == string(observer.NullError) && hasDated() {
		return nil
	}
	j := judgement{subject: "observer " + o.ID}
	reason, _ := observer.CommonReason(poison)
	j.mistake("%d of the first %d rows are poison: %s; %s", len(poison), rows, reason, poisonRemedy(o, reason))
	return j.findings
}

// poisonRemedy says what to set where rows are poison for that reason.
func poisonRemedy(o config.Observer, reason string) string {
	switch wiring.Query(o).PoisonClass(reason) {
	case observer.PoisonTimestamp:
		return "set timestamp to a column that says when a row was written, or cast this one in a query"
	case observer.PoisonKey:
		return "set key to columns that identify a row"
	case observer.PoisonColumn:
		return "leave it out of columns, or cast it in a query"
	}
	return "leave large columns out of columns, or raise max-row-bytes"
}

func (j *judgement) mistake(format string, args ...any) {
	err := wiring.Mistake(fmt.Errorf(format, args...))
	j.findings = append(j.findings, Finding{SeverityError, j.subject, err.Error(), err})
}

func (j *judgement) warn(format string, args ...any) {
	j.findings = append(j.findings, Finding{SeverityWarning, j.subject, fmt.Sprintf(format, args...), nil})
}

const (
	// businessLag is how far the newest value of a timestamp is behind the source's
	// clock from which it looks like a business date, if nothing keeps it.
	businessLag  = businessDays * 24 * time.Hour
	businessDays = 30
	// lagTime bounds the look for newer rows: without an index the source reads all.
	lagTime = 5 * time.Second
)

// judgeLag warns of a timestamp that nothing keeps, and that lags far behind.
func (c *ObserverCheck) judgeLag(ctx context.Context, src source.Database, d source.Description) {
	if d.Timestamp == "" || d.TimestampKept != source.No || d.TimestampDate || !mayHide(c.observer) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lagTime)
	defer cancel()
	q := wiring.Query(c.observer)
	q.Columns, q.NullTimestamp = q.Key, observer.NullSkip
	// What fails here fails in polls, too, and the sample has read the same; it may only
	// take too long, or there is no timestamp that is understood.
	late, err := isLate(ctx, src, q)
	if err != nil || !late {
		return
	}
	j := judgement{subject: "observer " + c.ID}
	j.warn("timestamp %s looks like a business date: no default, trigger or index is seen that would keep it, and its newest value "+
		"is more than %d days behind the source's clock; "+hides, d.Timestamp, businessDays)
	c.findings = append(c.findings, j.findings...)
}

// isLate reports whether there are rows with a timestamp, and none that is new.
func isLate(ctx context.Context, src source.Database, q observer.Query) (bool, error) {
	h, err := src.Horizon(ctx, q)
	if err != nil {
		return false, err
	}
	q.Form = h.Form
	now := h.Now
	if now.IsZero() {
		now = time.Now()
	}
	from, err := src.CursorAt(ctx, q, now.Add(-businessLag))
	if err != nil {
		return false, err
	}
	if recent, err := hasRows(ctx, src, q, from); recent || err != nil {
		return false, err
	}
	return hasRows(ctx, src, q, "")
}

// hasRows reports whether there is a row from that timestamp on.
func hasRows(ctx context.Context, src source.Database, q observer.Query, from string) (has bool, err error) {
	rows, err := src.Read(ctx, q, observer.Range{Part: observer.PartDated, From: from, Limit: 1})
	if err != nil {
		return false, fmt.Errorf("look for new rows: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	return rows.Next(), rows.Err()
}
