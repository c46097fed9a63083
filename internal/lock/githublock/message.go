package githublock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/lock/record"
)

// message is the last line of a commit's message.
type message struct {
	State       string    `json:"state"`
	Term        string    `json:"term,omitempty"`
	Node        string    `json:"node,omitempty"`
	Length      int64     `json:"length"` // of the chain
	Fence       int64     `json:"fence,omitempty"`
	Transitions int64     `json:"transitions"`
	TTL         string    `json:"ttl,omitempty"`
	AcquiredAt  time.Time `json:"acquired_at,omitzero"`
	Began       time.Time `json:"began,omitzero"` // by the server's clock, where an earlier commit began the term
	Region      string    `json:"region"`
	Key         string    `json:"key"`
	Name        string    `json:"name,omitempty"`
	Descriptor  string    `json:"descriptor,omitempty"`
	Metadata    string    `json:"metadata,omitempty"`
	Mark        string    `json:"mark"`
}

// The states of a lock.
const (
	held = "held"
	free = "free"
)

// messageOf is the message of the commit of a record. Each write has another mark, so no two
// writes are one commit.
func messageOf(n int, r record.Record, began time.Time) string {
	m := message{State: free, Length: r.Revision, Transitions: r.Transitions, Region: r.Region, Key: r.Key, Mark: r.Mark, Began: began}
	title := fmt.Sprintf("Lock of issue %d: free", n)
	if r.Term != "" {
		m.State, m.Term, m.Node, m.Fence, m.TTL, m.AcquiredAt = held, r.Term, r.Node, r.Fence, r.TTL.String(), r.AcquiredAt.UTC()
		m.Name, m.Descriptor, m.Metadata = r.Name, r.Descriptor, r.Metadata
		title = fmt.Sprintf("Lock of issue %d: held by %s", n, strings.Join(strings.Fields(cmp.Or(r.Node, "a process")), " "))
	}
	text, _ := json.Marshal(m) // It is made of texts and numbers.
	return title + "\n\n" + string(text)
}

// recordOf is the record of a commit's message, and when its term began if the message says so.
// The error is of a commit that is not ours.
func recordOf(text string) (record.Record, time.Time, error) {
	var m message
	_, last, _ := strings.Cut(strings.TrimSpace(text), "\n\n")
	if err := json.Unmarshal([]byte(last), &m); err != nil || m.Mark == "" || m.Length < 1 || (m.State == held) != (m.Term != "") {
		return record.Record{}, time.Time{}, errNotOurs
	}
	r := record.Record{
		Region: m.Region, Key: m.Key, Revision: m.Length, Mark: m.Mark, Term: m.Term, Transitions: m.Transitions, Fence: m.Fence,
		AcquiredAt: m.AcquiredAt, RenewedAt: m.AcquiredAt, Name: m.Name, Node: m.Node, Descriptor: m.Descriptor, Metadata: m.Metadata,
	}
	if m.State == held {
		var err error
		if r.TTL, err = time.ParseDuration(m.TTL); err != nil || r.TTL <= 0 {
			return record.Record{}, time.Time{}, errNotOurs
		}
	}
	return r, m.Began, nil
}

// comment is what people and programs read of a lock.
type comment struct {
	Lock struct {
		WorkerID      string `json:"worker_id"` // the term
		NodeID        string `json:"node_id"`
		ClaimedAt     string `json:"claimed_at"`
		HeartbeatLast string `json:"heartbeat_last"`
		ReleasedAt    string `json:"released_at,omitempty"`
		TaskInfo      struct {
			Complexity        string `json:"complexity"`
			EstimatedDuration string `json:"estimated_duration"`
			TaskType          string `json:"task_type"`
			Priority          string `json:"priority"`
		} `json:"task_info"` // of the metadata
	} `json:"lock"`
}

// mostTask bounds the metadata that a comment has: GitHub refuses one of more than 65,536 characters.
const mostTask = 8 << 10

// stamp writes a time to the nanosecond, so that each edit differs from the one before.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// commentOf is the text of the comment of a record's term.
func commentOf(r record.Record, released bool) string {
	now := stamp(time.Now())
	var c comment
	c.Lock.WorkerID, c.Lock.NodeID, c.Lock.ClaimedAt, c.Lock.HeartbeatLast = r.Term, r.Node, stamp(r.AcquiredAt), now
	if len(r.Metadata) <= mostTask { // Other names are left out.
		_ = json.Unmarshal([]byte(r.Metadata), &c.Lock.TaskInfo)
	}
	if released {
		c.Lock.ReleasedAt = now
	}
	text, _ := json.Marshal(c)
	return string(text)
}

// commentIn is what a comment says, or nothing if it is not one of a lock.
func commentIn(body string) (c comment) {
	if json.Unmarshal([]byte(body), &c) != nil || c.Lock.ClaimedAt == "" {
		return comment{}
	}
	return c
}
