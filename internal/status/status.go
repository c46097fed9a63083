// Package status has the report on a cluster: one value, read from the coordination
// database, that the status command prints and the status page shows.
package status

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrContent reports a row of the coordination database that this version cannot read, so
// that it does not help to ask again. What was read, and its column, come before it.
var ErrContent = errors.New("the coordination database has a value that this version cannot read; was it written by another version, or by hand?")

// Report is the state of a cluster as its coordination database has it.
type Report struct {
	// At is the database's clock when the report was made.
	At      time.Time `json:"at"`
	Backend string    `json:"backend"`
	// Cluster is the name of the cluster in the configuration; empty for none.
	Cluster string `json:"cluster,omitempty"`
	// Verdict is what a person has to know first.
	Verdict   Verdict    `json:"verdict"`
	Nodes     []Node     `json:"nodes"`
	Types     []Type     `json:"types"`
	Observers []Observer `json:"observers"`
	Sinks     []Sink     `json:"sinks"`
	// Parked are the sinks that have refused events.
	Parked []Parked `json:"parked"`
	// Polls are the last ones, newest first.
	Polls []Poll `json:"polls"`
	// Overdue are the types that no node has polled, though some should have; the verdict has them.
	Overdue []Overdue `json:"-"`
	// Locks are those of the pollers, and then others; MoreLocks is how many there
	// are beside them at least.
	Locks     []Lock `json:"locks"`
	MoreLocks int64  `json:"more_locks,omitempty"`
	// LockKinds counts the first thousand locks by subject and mode.
	LockKinds []LockKind `json:"-"`
	// Sweeps are those that run.
	Sweeps []Sweep `json:"sweeps"`
	// Generations are those of the observers that read all rows.
	Generations []Generation `json:"generations"`
	// Accounts are those that a source has refused, one for each secret.
	Accounts []Account `json:"refused_accounts"`
	// WentBack are the last streams of the event log that went back, newest first, of
	// a week.
	WentBack []WentBack `json:"log_went_back"`
	// Past are the polls of the last hour, oldest first, and more of observers that are polled
	// rarely. Only a node's own page has them.
	Past []PastPoll `json:"-"`
}

// Fresh is how many intervals the last turn of a type may be old.
const Fresh = 5

// Overdue is a type whose turn no node has taken since then.
type Overdue struct {
	Type  string
	Since time.Time
}

// Node is a process of the cluster.
type Node struct {
	Name        string   `json:"name"`
	BootID      string   `json:"boot_id"`
	Version     string   `json:"version"`
	ConfigHash  string   `json:"config_hash"`
	Types       []string `json:"types"`
	Unreachable []string `json:"unreachable,omitempty"`
	// Intervals are the distances between polls by type, as far as the node tells.
	Intervals map[string]time.Duration `json:"-"`
	// Outdated are the observers that the other nodes define in another way.
	Outdated  []string  `json:"outdated,omitempty"`
	StartedAt time.Time `json:"started_at"`
	SeenAt    time.Time `json:"seen_at"`
	// Gone reports whether the process was seen to die after SeenAt.
	Gone bool `json:"gone,omitempty"`
}

// Type is an observer type and its last turn.
type Type struct {
	Name string `json:"type"`
	// Interval and NextAt are those of the configuration of the command; zero where it does
	// not have the type. NextAt is zero, too, where no live node polls it.
	Interval     time.Duration `json:"interval_ms,omitempty"`
	NextAt       time.Time     `json:"next_turn_at,omitzero"`
	TurnAt       time.Time     `json:"turn_at"`
	LastNode     string        `json:"last_node"`
	LastOutcome  string        `json:"last_outcome"`
	LastDuration time.Duration `json:"last_duration_ms"`
	// FinishedAt is when the last turn ended.
	FinishedAt time.Time `json:"-"`
}

// Observer is one observer and how far it has come.
type Observer struct {
	ID string `json:"observer"`
	// Type to Interval are those of the configuration of the command; empty where it does
	// not have the observer.
	Type     string        `json:"type,omitempty"`
	Source   string        `json:"source,omitempty"`
	Detect   string        `json:"detect,omitempty"`
	Interval time.Duration `json:"interval_ms,omitempty"`
	State    string        `json:"state"`
	// NextPollAt is the tick at which a node polls it next; zero where none will.
	NextPollAt time.Time `json:"next_poll_at,omitzero"`
	// TurnAt and LastOKAt are zero for an observer that was never polled.
	TurnAt   time.Time `json:"turn_at,omitzero"`
	LastOKAt time.Time `json:"last_ok_at,omitzero"`
	RetryAt  time.Time `json:"retry_at,omitzero"`
	// Pause is nil for an observer that is not paused.
	Pause    *Pause `json:"pause,omitempty"`
	Failures int    `json:"failures"`
	// LastError is that of the last poll that failed, until one goes well.
	LastError string `json:"last_error,omitempty"`
	// Refusal is what a poll or a sweep has refused to do, until 'observerd observers accept'.
	Refusal string `json:"refusal,omitempty"`
	// Recent are the polls of the last minutes.
	Recent Recent `json:"recent"`
	Events int64  `json:"events"`
	Live   int64  `json:"live_rows"`
	Gone   int64  `json:"gone_rows"`
	Dead   int64  `json:"dead_rows"`
	// DeadSince is when the first of the poison rows was met.
	DeadSince time.Time `json:"dead_since,omitzero"`
	// Lag is how far the observer is behind after a poll that has left rows behind.
	Lag time.Duration `json:"lag_ms"`
	// Complete reports whether the stream was complete once.
	Complete bool `json:"-"`
	// Freshness is how long ago the stream was last known to be complete, by the database
	// alone; 0 for unknown, as in a first load and while it is paused. FreshnessObjective is
	// that of the configuration; 0 for none.
	Freshness          time.Duration `json:"freshness_ms,omitempty"`
	FreshnessObjective time.Duration `json:"freshness_objective_ms,omitempty"`
	LowWater           string        `json:"low_water_mark"`
	Newest             string        `json:"newest"`
}

// Pause is why an observer is not polled, or a sink not fed.
type Pause struct {
	// At is when it began. Until is when it ends by itself, by the clock of the
	// coordination database; zero: not before it is resumed.
	At    time.Time `json:"at,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// By is the actor of the audit table.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Words continues "is paused": since when, until when, by whom and why. span words a
// duration.
func (p Pause) Words(now time.Time, span func(time.Duration) string) string {
	var text strings.Builder
	if !p.At.IsZero() {
		fmt.Fprintf(&text, " for %s", span(now.Sub(p.At)))
	}
	if !p.Until.IsZero() {
		fmt.Fprintf(&text, ", and for %s more", span(p.Until.Sub(now)))
	}
	if p.By != "" {
		text.WriteString(", by " + p.By)
	}
	if p.Reason != "" {
		text.WriteString(": " + p.Reason)
	}
	return text.String()
}

// The states of an observer.
const (
	StateActive  = "active"
	StatePaused  = "paused"
	StateBackoff = "backoff"
	// StateUnpolled is an observer that is neither, and that no live node polls.
	StateUnpolled = "unpolled"
	// StateDisabled is an observer that the configuration switches off, by itself or with
	// its type.
	StateDisabled = "disabled"
	// StateRemoved is an observer that the configuration does not have, but the coordination
	// database does.
	StateRemoved = "not configured"
)

// Recent sums up the polls that have ended within Span.
type Recent struct {
	Span   time.Duration `json:"span_ms"`
	Polls  int64         `json:"polls"`
	Failed int64         `json:"failed_polls"`
	Rows   int64         `json:"rows"`
	Events int64         `json:"events"`
	// Poison are the rows that could not become an event.
	Poison int64 `json:"poison_rows"`
}

// Poll is one poll of one observer.
type Poll struct {
	Observer  string        `json:"observer"`
	Node      string        `json:"node"`
	StartedAt time.Time     `json:"started_at"`
	Duration  time.Duration `json:"duration_ms"`
	Outcome   string        `json:"outcome"`
	// Reason is why it failed; empty when it did not.
	Reason string `json:"reason,omitempty"`
	Rows   int64  `json:"rows"`
	Events int64  `json:"events"`
	Poison int64  `json:"poison_rows"`
}

// PastPoll is one poll in short.
type PastPoll struct {
	Observer, Type, Node string
	// TurnAt is the tick of the turn of its type.
	TurnAt, FinishedAt time.Time
	Duration           time.Duration `json:"duration_ms"`
	Outcome            string
	// Poison is the number of rows that could not become an event.
	Poison int64
}

// Sink is a sink's position in one stream.
type Sink struct {
	Sink   string `json:"sink"`
	Stream string `json:"stream"`
	Offset int64  `json:"offset"`
	Last   int64  `json:"last"`
	// Lag is how long the oldest event that is not stored has waited; 0 when
	// all are.
	Lag time.Duration `json:"lag_ms"`
	// Node feeds the sink; empty where none does, or where it is not among the locks of the
	// report.
	Node string `json:"node,omitempty"`
	// LastError is why the sink stores nothing, on FailedNode since FailedAt; empty when the
	// last attempt went well.
	LastError  string    `json:"last_error,omitempty"`
	FailedNode string    `json:"failed_node,omitempty"`
	FailedAt   time.Time `json:"failed_at,omitzero"`
	// Pause is set while an operator, or the receiver itself, has paused the sink.
	Pause *Pause `json:"pause,omitempty"`
}

// Parked is how many events a sink has refused, with later ones of their keys.
type Parked struct {
	Sink   string `json:"sink"`
	Events int64  `json:"events"`
	// Since is when the first of them was parked.
	Since time.Time `json:"since"`
}

// Lock is a row of INT_LOCK.
type Lock struct {
	Key    string `json:"key"`
	Region string `json:"region"`
	// Holder and Fence are empty for a holder that is not observerd, and so is Name where the
	// configuration does not have the lock. Of a lock that several share, Holder says how
	// many.
	Holder string `json:"holder"`
	Name   string `json:"name"`
	Fence  int64  `json:"fence"`
	Term   string `json:"term"`
	// Subject, Predicate and Mode are empty for locks that do not have them, and for strangers.
	Subject   string `json:"subject,omitempty"`
	Predicate string `json:"predicate,omitempty"`
	Mode      string `json:"mode,omitempty"`
	// MaxHold is how long the policies of the configuration let it be held; 0 is no bound.
	MaxHold time.Duration `json:"max_hold_ms,omitempty"`
	// AcquiredAt is zero for a stranger. Waiting is how many wait for the lock.
	AcquiredAt time.Time `json:"acquired_at,omitzero"`
	Waiting    int64     `json:"waiting,omitempty"`
	// Left is 0 or less when the lease has expired; it is unknown for a foreign
	// holder.
	Left time.Duration `json:"ttl_left_ms"`
	// Ahead is how far the row is dated ahead of the database's clock, 0 unless
	// that is more than clocks may differ.
	Ahead time.Duration `json:"ahead_ms,omitempty"`
}

// LockKind counts the locks of a subject and mode.
type LockKind struct {
	Subject, Mode  string
	Locks, Waiting int64
	// Oldest is the lock that is held for longest.
	Oldest Lock
}

// Generation is an observer's reading of all rows of its source.
type Generation struct {
	Observer string `json:"observer"`
	// Rows is the number of rows that were read so far. Of is the number of live rows
	// known now, which is about the number that it will read.
	Rows int64 `json:"rows"`
	Of   int64 `json:"of"`
	// StartedAt is when it began, FinishedAt when it was complete; zero before.
	StartedAt  time.Time `json:"started_at,omitzero"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
	// Took is the duration of the last complete generation; 0 before the first.
	Took time.Duration `json:"took_ms"`
}

// Sweep reads a range of an observer's source beside its polls.
type Sweep struct {
	ID       int64  `json:"id"`
	Observer string `json:"observer"`
	// Kind is "backfill" or "reconcile".
	Kind string `json:"kind"`
	// From and Before are the bounds of the range, Position is how far it was read: all
	// in the source's own text, empty for no bound.
	From     string `json:"from"`
	Before   string `json:"before"`
	Position string `json:"position"`
	// Rows were read and Events written so far.
	Rows      int64     `json:"rows"`
	Events    int64     `json:"events"`
	StartedAt time.Time `json:"started_at"`
	// UpdatedAt is when the last step was committed.
	UpdatedAt time.Time `json:"updated_at"`
}

// WentBack is a stream of the event log that a node found in an earlier state than it
// knew.
type WentBack struct {
	Observer string `json:"observer"`
	// Node is the node that noticed it, At the time.
	Node string    `json:"node"`
	At   time.Time `json:"at"`
	// Detail names an event by its sequence and id, and the event in its place.
	Detail string `json:"detail"`
}

// Account is an account that a source has refused with one secret. Nodes with that
// secret do not log on. There may be several secrets for one account.
type Account struct {
	ID string `json:"account"`
	// Since is when its secret was refused. It is not tried again before 'observerd
	// observers resume'.
	Since time.Time `json:"since"`
	// Node is the node that was refused, Reason the text of the source.
	Node   string `json:"node"`
	Reason string `json:"reason"`
}

// Span rounds a duration to what a person wants to know: at most two units.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "-" + Span(d.Abs()) // Of the least duration -d is itself.
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second), " 0 s")
	case d < day:
		return strings.TrimSuffix(fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute), " 0 min")
	}
	return strings.TrimSuffix(fmt.Sprintf("%d d %d h", d/day, d%day/time.Hour), " 0 h")
}
