package main

import "testing"

// TestWordsAreThoseOfWholeTicks counts a log that begins and ends within a tick, and one without any.
func TestWordsAreThoseOfWholeTicks(t *testing.T) {
	t.Parallel()
	const begin, other = `{"time":"t","level":"INFO","msg":"Starting scheduled polling cycle for all observer types","tick":"t"}`, `{"time":"t","level":"INFO","msg":"Lock acquired","type":"a"}`
	for log, want := range map[string]logged{
		other + "\n" + begin + "\n" + other + "\n" + begin + "\n" + other + "\n": {ticks: 1, lines: 2, words: 3 + 8 + 3 + 2},
		other + "\n" + `{"msg":"Polling summary"}` + "\n":                        {lines: 1, words: 5},
	} {
		if got, err := countLog(log); err != nil || got != want {
			t.Errorf("%+v, %v, want %+v of\n%s", got, err, want, log)
		}
	}
	if _, err := countLog("panic: no JSON\n"); err == nil {
		t.Error("a line that is no JSON was counted")
	}
}
