// Package status is what a person is told of a cluster: one value, built from
// the coordination database, that the status command prints and the status
// page shows.
package status

import "time"

// Report is the state of a cluster as its coordination database has it.
type Report struct {
	// At is the database's clock when the report was made.
	At        time.Time  `json:"at"`
	Backend   string     `json:"backend"`
	Nodes     []Node     `json:"nodes"`
	Types     []Type     `json:"types"`
	Observers []Observer `json:"observers"`
	Sinks     []Sink     `json:"sinks"`
	// Polls are the last ones, newest first.
	Polls []Poll `json:"polls"`
	Locks []Lock `json:"locks"`
}

// Node is a process of the cluster.
type Node struct {
	Name        string    `json:"name"`
	BootID      string    `json:"boot_id"`
	Version     string    `json:"version"`
	ConfigHash  string    `json:"config_hash"`
	Types       []string  `json:"types"`
	Unreachable []string  `json:"unreachable,omitempty"`
	StartedAt   time.Time `json:"started_at"`
	SeenAt      time.Time `json:"seen_at"`
}

// Type is an observer type and its last turn.
type Type struct {
	Name         string        `json:"type"`
	TurnAt       time.Time     `json:"turn_at"`
	LastNode     string        `json:"last_node"`
	LastOutcome  string        `json:"last_outcome"`
	LastDuration time.Duration `json:"last_duration_ns"`
}

// Observer is one observer and how far it has come.
type Observer struct {
	ID    string `json:"observer"`
	State string `json:"state"`
	// TurnAt and LastOKAt are zero for an observer that was never polled.
	TurnAt    time.Time `json:"turn_at"`
	LastOKAt  time.Time `json:"last_ok_at"`
	RetryAt   time.Time `json:"retry_at"`
	Failures  int       `json:"failures"`
	LastError string    `json:"last_error,omitempty"`
	Events    int64     `json:"events"`
	Live      int64     `json:"live_rows"`
	Dead      int64     `json:"dead_rows"`
	LowWater  string    `json:"low_water_mark"`
	Newest    string    `json:"newest"`
}

// The states of an observer.
const (
	StateActive  = "active"
	StatePaused  = "paused"
	StateBackoff = "backoff"
)

// Poll is one poll of one observer.
type Poll struct {
	Observer  string        `json:"observer"`
	Node      string        `json:"node"`
	StartedAt time.Time     `json:"started_at"`
	Duration  time.Duration `json:"duration_ns"`
	Outcome   string        `json:"outcome"`
	// Reason says why it failed; empty when it did not.
	Reason string `json:"reason,omitempty"`
	Rows   int64  `json:"rows"`
	Events int64  `json:"events"`
	Poison int64  `json:"poison_rows"`
}

// Sink is a sink's position in one stream.
type Sink struct {
	Sink   string `json:"sink"`
	Stream string `json:"stream"`
	Offset int64  `json:"offset"`
	Last   int64  `json:"last"`
	// Lag is how long the oldest event that is not stored has waited; 0 when
	// all are.
	Lag time.Duration `json:"lag_ns"`
}

// Lock is a row of INT_LOCK.
type Lock struct {
	Key    string `json:"key"`
	Region string `json:"region"`
	// Holder, Name and Fence are empty for a holder that is not observerd.
	Holder string        `json:"holder"`
	Name   string        `json:"name"`
	Fence  int64         `json:"fence"`
	Term   string        `json:"term"`
	Left   time.Duration `json:"ttl_left_ns"`
}
