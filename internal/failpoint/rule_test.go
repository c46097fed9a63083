package failpoint

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestRules(t *testing.T) {
	t.Parallel()
	got, err := parse(" commit.before=kill@3; poll.chunk=sleep:200ms-1s@* ;copy.fenced=stop;;relay.stored=exit@1;relay.read=panic")
	if err != nil {
		t.Fatal(err)
	}
	want := []rule{
		{name: "commit.before", action: "kill", at: 3},
		{name: "poll.chunk", action: "sleep", from: 200 * time.Millisecond, to: time.Second},
		{name: "copy.fenced", action: "stop", at: 1},
		{name: "relay.stored", action: "exit", at: 1},
		{name: "relay.read", action: "panic", at: 1},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestBadRules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"commit.before":                   "want name=action@hit",
		"commit.begin=kill":               `there is no point "commit.begin"`,
		"commit.before=hang":              `there is no action "hang"`,
		"commit.before=kill:9":            "takes no argument",
		"commit.before=kill@0":            "neither * nor a number from 1",
		"commit.before=kill@x":            "neither * nor a number from 1",
		"commit.before=sleep":             "sleep:",
		"commit.before=sleep:2s-1s":       "not a time to sleep",
		"commit.before=sleep:-1s":         "sleep:",
		"poll.chunk=stop;commit.start=no": `there is no point "commit.start"`,
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := parseOffset("an hour"); err == nil || !strings.Contains(err.Error(), ClockVariable) {
		t.Errorf("a bad offset: %v", err)
	}
}

func TestWhenARuleBites(t *testing.T) {
	t.Parallel()
	third, each := rule{name: "poll.query", at: 3}, rule{name: "poll.query"}
	for hit := int64(1); hit <= 4; hit++ {
		if third.applies("poll.query", hit) != (hit == 3) {
			t.Errorf("@3 at hit %d", hit)
		}
		if !each.applies("poll.query", hit) || each.applies("poll.chunk", hit) {
			t.Errorf("@* at hit %d", hit)
		}
	}
	slow := rule{from: 5, to: 9}
	for range 100 {
		if d := slow.pause(); d < 5 || d > 9 {
			t.Fatalf("slept %d", d)
		}
	}
}
