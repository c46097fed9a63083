package events_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/events"
)

// TestBinaryIsWhatJSONSays compares the attributes of the binary modes with the members of
// the structured one.
func TestBinaryIsWhatJSONSays(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.FixedZone("", 3600))
	for _, e := range []events.Event{
		{},
		{ID: events.NewID("orders", 0, "k", 1, nil), Stream: "a stream/of \"orders\"", Type: "A\xffB", Subject: "east/\"47\"\n\x00\xfe%ü", Seq: 1 << 40, Version: 7,
			Change: events.ChangeGone, Time: at, Observed: at, Snapshot: true, Data: []byte(`{"a":1}`)},
		{Stream: "orders", Type: "T", Data: []byte("no JSON: \x00\xff")},
		{Stream: "orders", Type: "T", Time: time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600))},
	} {
		var members map[string]any
		if err := json.Unmarshal(events.AppendJSON(nil, &e), &members); err != nil {
			t.Fatal(err)
		}
		values, contentType := events.Binary(&e)
		if want := members["datacontenttype"]; want == nil && contentType != "" || want != nil && want != contentType {
			t.Errorf("the content type is %q, want %v", contentType, want)
		}
		for _, name := range []string{"datacontenttype", "data", "data_base64"} {
			delete(members, name)
		}
		for i, name := range events.Attributes {
			if len(values[i]) == 0 {
				continue
			}
			if got, want := string(values[i]), fmt.Sprint(members[name]); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
			delete(members, name)
		}
		for name, value := range members {
			if value != "" {
				t.Errorf("%s is missing, which is %v", name, value)
			}
		}
	}
}
