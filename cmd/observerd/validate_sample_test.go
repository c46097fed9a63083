package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestSampleIsATable has values of every kind, and a column that only the second row has.
func TestSampleIsATable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := printSample(&out, []json.RawMessage{
		json.RawMessage(`{"type":"T","subject":"1","time":"2026-01-01T00:00:00Z","data":{"id":1,"name":"","note":null,"price":1.50,"tags":["a","b"]}}`),
		json.RawMessage(`{"type":"T","subject":"2","data":{"id":2,"name":"a\nb","note":"null","price":12345678901234567890,"more":{"x":true},"long":"` +
			strings.Repeat("ü", 41) + `"}}`),
	})
	want := `  the first rows as events of type T:
    SUBJECT  TIME                  id  name  note  price                 tags       more        long
    1        2026-01-01T00:00:00Z  1   ""    null  1.50                  ["a","b"]              
    2                              2   a b   null  12345678901234567890             {"x":true}  ` + strings.Repeat("ü", 39) + "…\n"
	if out.String() != want || err != nil {
		t.Errorf("%v:\n%s\nwant\n%s", err, out.String(), want)
	}
	out.Reset()
	if err := printSample(&out, nil); err != nil || out.Len() > 0 {
		t.Errorf("of no rows: %v, %q", err, out.String())
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for want, counts := range map[string][2]int{
		"no observer is enabled":         {0, 0},
		"1 observer is ready":            {1, 1},
		"3 observers are ready":          {3, 3},
		"1 of 1 observer is not ready":   {0, 1},
		"1 of 2 observers is not ready":  {1, 2},
		"3 of 4 observers are not ready": {1, 4},
	} {
		if got := observersReady(counts[0], counts[1]); got != want {
			t.Errorf("%d of %d: %q, want %q", counts[0], counts[1], got, want)
		}
	}
}
