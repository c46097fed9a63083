package sourcetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
)

// Mark is a value of a row that no error may hold.
const Mark = "confidential4711"

// Withheld reads what fails over a row that holds [Mark], explains it and
// describes it, and returns the error of the read. No error may hold the mark.
func Withheld(t *testing.T, s Source, q observer.Query) error {
	t.Helper()
	errs := (Fixture{Source: s}).everywhere(t, q)
	_, errs["Plan"] = s.Plan(t.Context(), q, observer.Range{})
	for method, err := range errs {
		if err != nil && strings.Contains(strings.ToLower(err.Error()), Mark) {
			t.Errorf("%s says %q, which holds a value", method, err)
		}
	}
	if errs["Read"] == nil {
		t.Errorf("%s%s was read", q.Table, q.SQL)
	}
	return errs["Read"]
}

// Refusal is the failure of a read, which is to have a class, a code, and words.
func Refusal(t *testing.T, err error, class observer.Class, code string, words ...string) {
	t.Helper()
	var f *observer.Fault
	if !errors.As(err, &f) || f.Class != class || f.Code != code {
		t.Errorf("%v: %+v, want class %s and code %s", err, f, class, code)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q lacks %q", err, word)
		}
	}
}
