package file_test

import (
	"reflect"
	"testing"

	"github.com/observerd/observerd/internal/events"
)

func TestLastEventAtTheOpening(t *testing.T) {
	t.Parallel()
	orders, tasks := batch("orders", 1, 3), batch("tasks", 1, 2)
	last := func(e events.Event) events.Event { return events.Event{Stream: e.Stream, Seq: e.Seq, ID: e.ID} }
	whole := lines(orders, tasks)
	for name, tc := range map[string]struct {
		content string
		want    events.Event
	}{
		"nothing":       {"", events.Event{}},
		"events":        {whole, last(tasks[1])},
		"a torn end":    {whole[:len(whole)-20], last(tasks[0])},
		"no line break": {whole[:len(whole)-1], last(tasks[1])},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := tempPath(t)
			write(t, path, tc.content)
			s := open(t, path)
			if got, ok := s.Last(); ok != (tc.want.Seq > 0) || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("last %+v %t, want %+v", got, ok, tc.want)
			}
		})
	}
}
