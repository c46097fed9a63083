package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// ErrNotEvent reports that a text is not an event that [AppendJSON] encoded.
var ErrNotEvent = errors.New("not an event of observerd")

type encoded struct {
	SpecVersion string          `json:"specversion"`
	ID          string          `json:"id"`
	Source      string          `json:"source"`
	Type        string          `json:"type"`
	Subject     string          `json:"subject"`
	Time        string          `json:"time"`
	Observed    string          `json:"observedtime"`
	Sequence    string          `json:"sequence"`
	RowVersion  int64           `json:"rowversion"`
	Change      Change          `json:"change"`
	Snapshot    bool            `json:"snapshot"`
	Data        json.RawMessage `json:"data"`
	DataBase64  []byte          `json:"data_base64"`
}

// Decode reads an event that [AppendJSON] encoded. The error is [ErrNotEvent]
// for anything else, and never quotes the text.
func Decode(text []byte) (Event, error) {
	var c encoded
	if err := json.Unmarshal(text, &c); err != nil {
		return Event{}, fmt.Errorf("%w: no valid JSON object", ErrNotEvent)
	}
	if c.SpecVersion != "1.0" {
		return Event{}, notEvent("specversion")
	}
	e := Event{Type: c.Type, Subject: unescapeSubject(c.Subject), Version: c.RowVersion, Change: c.Change, Snapshot: c.Snapshot, Data: c.Data}
	if c.DataBase64 != nil {
		e.Data = c.DataBase64
	}
	var err error
	if e.ID, err = uuid.Parse(c.ID); err != nil {
		return Event{}, notEvent("id")
	}
	var ok bool
	if e.Stream, ok = streamOf(c.Source); !ok {
		return Event{}, notEvent("source")
	}
	if e.Seq, err = strconv.ParseInt(c.Sequence, 10, 64); err != nil {
		return Event{}, notEvent("sequence")
	}
	if e.Time, err = timeOf(c.Time); err != nil {
		return Event{}, notEvent("time")
	}
	if e.Observed, err = timeOf(c.Observed); err != nil {
		return Event{}, notEvent("observedtime")
	}
	return e, nil
}

func timeOf(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339, text)
}

func notEvent(attribute string) error {
	return fmt.Errorf("%w: no valid %s", ErrNotEvent, attribute)
}
