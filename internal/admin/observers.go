package admin

import (
	"context"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/status"
)

// The states that an observer has beside those of package status.
const (
	// StateDisabled is an observer that this configuration switches off, by
	// itself or with its type.
	StateDisabled = "disabled"
	// StateRemoved is an observer that this configuration does not have, but
	// the coordination database does.
	StateRemoved = "not configured"
)

// ObserverState is an observer as the configuration and the coordination
// database together have it.
type ObserverState struct {
	ID string `json:"observer"`
	// Type, Source and Detect are empty for an observer that is not configured.
	Type   string `json:"type,omitempty"`
	Source string `json:"source,omitempty"`
	Detect string `json:"detect,omitempty"`
	State  string `json:"state"`
	// LastOKAt is the end of the last poll that went well; zero for none.
	LastOKAt  time.Time `json:"last_ok_at,omitzero"`
	Failures  int       `json:"failures"`
	LastError string    `json:"last_error,omitempty"`
	Events    int64     `json:"events"`
	Dead      int64     `json:"dead_rows"`
}

// Observers returns every observer, sorted by id, and the database's clock.
func (op *Operator) Observers(ctx context.Context) ([]ObserverState, time.Time, error) {
	report, err := op.Report(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	byID := make(map[string]ObserverState)
	for _, o := range op.cfg.Observers {
		byID[o.ID] = ObserverState{
			ID: o.ID, Type: o.Type, Source: o.Source, Detect: o.Detect, State: switched(op.cfg, o),
		}
	}
	for _, o := range report.Observers {
		s, configured := byID[o.ID]
		s.ID, s.LastOKAt, s.Failures, s.LastError, s.Events, s.Dead = o.ID, o.LastOKAt, o.Failures, o.LastError, o.Events, o.Dead
		switch {
		case !configured:
			s.State = StateRemoved
		case s.State == status.StateActive || o.State == status.StatePaused:
			s.State = o.State
		}
		byID[o.ID] = s
	}
	all := make([]ObserverState, 0, len(byID))
	for _, id := range sortedKeys(byID) {
		all = append(all, byID[id])
	}
	return all, report.At, nil
}

// switched is the state as far as the configuration decides it.
func switched(cfg *config.Config, o config.Observer) string {
	if !o.Enabled || !cfg.Scheduler.Types[o.Type].Enabled {
		return StateDisabled
	}
	return status.StateActive
}
