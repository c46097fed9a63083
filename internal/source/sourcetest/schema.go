package sourcetest

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// schema is the JSON Schema of the events of a query, as users get it; nil for a query that
// is not to be described.
type schema struct{ *jsonschema.Schema }

func (f Fixture) schema(t *testing.T, q observer.Query) schema {
	t.Helper()
	d, err := f.Source.Describe(t.Context(), q)
	if err != nil && q.Key[0] == "v" {
		return schema{} // Values of some types do not compare: its key cannot be looked at.
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := source.Select(q, d.Columns, d.Table)
	if err != nil {
		t.Fatal(err)
	}
	text, err := events.Contract{Stream: "orders", Type: events.TypeInventory, Members: s.EventMembers(), More: len(q.Columns) == 0}.Schema()
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.AssertContent()
	if err := c.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return schema{compiled}
}

// check holds an event with that data against the schema.
func (s schema) check(t *testing.T, what string, change events.Change, data string) {
	t.Helper()
	if s.Schema == nil {
		return
	}
	e := events.Event{
		ID: uuid.New(), Stream: "orders", Seq: 1, Type: events.TypeInventory, Subject: "1", Version: 1, Change: change,
		Time: time.Unix(0, 0), Observed: time.Unix(1, 0), Snapshot: change == events.ChangeNew, Data: []byte(data),
	}
	text := events.AppendJSON(nil, &e)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = s.Validate(document)
	}
	if err != nil {
		t.Errorf("%s: %v in %s", what, err, short(string(text)))
	}
}
