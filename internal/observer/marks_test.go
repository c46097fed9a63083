package observer_test

import (
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

func TestMarksAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	for _, m := range []observer.Marks{
		{},
		{Identity: "db:1", Columns: `[["id","int"]]`, FullColumns: `[["id","text"]]`, Order: `["id"]`, RereadAt: observertest.Time(7), Form: "a \"form\"", KeyForm: "<k>", FollowedFrom: "日本"},
	} {
		got, err := observer.DecodeMarks(m.Encode())
		equal(t, "error", err, nil)
		equal(t, "marks", got, m)
	}
	for _, none := range []string{"", "{}"} {
		got, err := observer.DecodeMarks(none)
		equal(t, "error", err, nil)
		equal(t, "marks of "+none, got, observer.Marks{})
	}
	if _, err := observer.DecodeMarks("["); err == nil {
		t.Error("no marks were read")
	}
}

// TestMarksOfALaterVersionStay covers nodes of two versions at work together: some marks are
// written once.
func TestMarksOfALaterVersionStay(t *testing.T) {
	t.Parallel()
	m, err := observer.DecodeMarks(`{"of_the_next":{"a":[1,2]},"identity":"db:1","another":1.50}`)
	equal(t, "error", err, nil)
	equal(t, "identity", m.Identity, "db:1")
	m.Form = "form"
	m = m.Reset(true, true)
	m.Identity = "db:2"
	again, err := observer.DecodeMarks(m.Encode())
	equal(t, "error", err, nil)
	equal(t, "read again", again, m)
	for _, want := range []string{`"of_the_next":{"a":[1,2]}`, `"another":1.50`, `"identity":"db:2"`, `"form":""`} {
		equal(t, want+" in "+m.Encode(), strings.Contains(m.Encode(), want), true)
	}
}
