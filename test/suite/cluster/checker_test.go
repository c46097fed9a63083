package cluster_test

import "testing"

// TestCheckerNoticesEachFault holds the checker itself to what it must notice.
func TestCheckerNoticesEachFault(t *testing.T) {
	t.Parallel()
	event := func(id, subject string, seq, version int64) recorded {
		return recorded{id: id, stream: "orders", subject: subject, seq: seq, version: version, status: "NEW"}
	}
	sound := []recorded{event("1", "a", 1, 1), event("2", "b", 2, 1), event("3", "a", 3, 2)}
	if err := disorder(sound); err != nil {
		t.Errorf("a sound history: %v", err)
	}
	for name, last := range map[string]recorded{
		"an event twice":      event("3", "c", 4, 1),
		"a gap":               event("4", "c", 5, 1),
		"out of order":        event("4", "c", 3, 1),
		"a key twice":         event("4", "b", 4, 1),
		"a version left out":  event("4", "b", 4, 3),
		"begins at version 2": event("4", "c", 4, 2),
	} {
		if disorder(append(sound[:3:3], last)) == nil {
			t.Errorf("%s was not noticed", name)
		}
	}
	rows := map[string]string{"a": "NEW", "b": "NEW"}
	if err := difference("orders", lastStatus(sound, "orders"), rows); err != nil {
		t.Errorf("a whole history: %v", err)
	}
	for name, rows := range map[string]map[string]string{
		"a lost row":      {"a": "NEW", "b": "NEW", "c": "NEW"},
		"an invented row": {"a": "NEW"},
		"a stale row":     {"a": "NEW", "b": "DONE"},
	} {
		if difference("orders", lastStatus(sound, "orders"), rows) == nil {
			t.Errorf("%s was not noticed", name)
		}
	}
	if missing("the file", sound[:2], "the log", sound) == nil || missing("the log", sound, "the file", sound[:2]) != nil {
		t.Error("an event that only one of log and file has was not noticed")
	}
}
