package admin

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/wiring"
)

// lastActs is how many acts are shown of an observer.
const lastActs = 10

// ObserverDetails is all that is known of one observer. Its parts are those of a
// [Report].
type ObserverDetails struct {
	At       time.Time       `json:"at"`
	Observer status.Observer `json:"observer"`
	// URL is that of the source, without secrets; empty for an observer that is not
	// configured.
	URL string `json:"source_url,omitempty"`
	// Refusal is what the last poll has refused to do, until 'observerd observers accept'.
	Refusal string `json:"refusal,omitempty"`
	// Definition is what the configuration says.
	Definition Definition `json:"definition"`
	// Polls and Acts are the last ones, newest first.
	Polls       []status.Poll       `json:"polls"`
	Sinks       []status.Sink       `json:"sinks"`
	Sweeps      []status.Sweep      `json:"sweeps"`
	Generations []status.Generation `json:"generations"`
	// Accounts are the refusals of the source's account.
	Accounts []status.Account `json:"refused_accounts"`
	Acts     []Act            `json:"acts"`
}

// Act is what an operator did, as JSON has it.
type Act struct {
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`
	Action  string    `json:"action"`
	Subject string    `json:"subject"`
	Detail  string    `json:"detail,omitempty"`
}

// Show returns all that is known of an observer. Its error is a
// [*wiring.UnknownIDError] where neither configuration nor database has the id.
func (op *Operator) Show(ctx context.Context, id string) (d ObserverDetails, err error) {
	r, err := op.Report(ctx)
	if err != nil {
		return d, err
	}
	i := slices.IndexFunc(r.Observers, func(o status.Observer) bool { return o.ID == id })
	if i < 0 {
		var known []string
		for _, o := range r.Observers {
			known = append(known, o.ID)
		}
		return d, &wiring.UnknownIDError{ID: id, Known: known}
	}
	d = ObserverDetails{At: r.At, Observer: r.Observers[i]}
	d.Sinks = only(r.Sinks, func(s status.Sink) bool { return s.Stream == id })
	d.Sweeps = only(r.Sweeps, func(s status.Sweep) bool { return s.Observer == id })
	d.Generations = only(r.Generations, func(g status.Generation) bool { return g.Observer == id })
	if o, err := op.configured(id); err == nil {
		source := op.cfg.Sources[o.Source].URL
		account, _ := source.Account()
		d.URL, d.Definition = source.String(), o.Settings()
		d.Accounts = only(r.Accounts, func(a status.Account) bool { return a.ID == account })
	}
	if d.Polls, err = op.db.PollsOf(ctx, id); err != nil {
		return d, err
	}
	if d.Acts, err = op.acts(ctx, ActFilter{Subject: id, Limit: lastActs}); err != nil {
		return d, err
	}
	refusal, err := op.refused(ctx, id)
	if !refusal.Accepted {
		d.Refusal = refusal.Text
	}
	return d, err
}

// Definition are the settings of an observer. In JSON it is an object.
type Definition []config.Setting

// MarshalJSON implements [json.Marshaler].
func (d Definition) MarshalJSON() ([]byte, error) {
	object := make(map[string]string, len(d))
	for _, s := range d {
		object[s.Key] = s.Value
	}
	return json.Marshal(object)
}

func only[T any](all []T, wanted func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !wanted(one) })
}

// changesOf are the changes that the events of an observer tell of.
var changesOf = map[string][]events.Change{
	config.DetectNew:      {events.ChangeNew},
	config.DetectChange:   {events.ChangeNew, events.ChangeChanged},
	config.DetectSnapshot: {events.ChangeNew, events.ChangeChanged, events.ChangeGone},
}

// EventSchema returns the JSON Schema of an observer's events, by what its source says of
// the columns now. It does not ask the coordination database.
func (op *Operator) EventSchema(ctx context.Context, id string) (_ []byte, err error) {
	o, err := op.configured(id)
	if err != nil {
		return nil, err
	}
	src, err := op.open(o.Source)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	q, err := observer.WithKey(ctx, src, wiring.Query(o))
	if err != nil {
		return nil, err
	}
	d, err := src.Describe(ctx, q)
	if err != nil {
		return nil, err
	}
	s, err := source.Select(q, d.Columns, d.Table)
	if err != nil {
		return nil, err
	}
	c := events.Contract{Stream: o.ID, Type: o.Event, Changes: changesOf[o.Detect], Members: s.EventMembers(), More: len(o.Columns) == 0}
	return c.Schema()
}
