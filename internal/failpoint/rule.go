package failpoint

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rule is one action at one point.
type rule struct {
	name, action string
	// at is the hit at which it happens; 0 is each.
	at int64
	// from and to bound a sleep.
	from, to time.Duration
}

func (r rule) applies(name string, hit int64) bool {
	return r.name == name && (r.at == 0 || r.at == hit)
}

// pause is how long to sleep.
func (r rule) pause() time.Duration { return r.from + rand.N(r.to-r.from+1) }

// parse reads the rules of a run; empty parts are skipped.
func parse(text string) ([]rule, error) {
	var rules []rule
	for part := range strings.SplitSeq(text, ";") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		r, err := parseRule(part)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", Variable, part, err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func parseRule(text string) (r rule, err error) {
	name, rest, ok := strings.Cut(text, "=")
	if !ok {
		return r, fmt.Errorf("want name=action@hit")
	}
	if !slices.Contains(Names(), name) {
		return r, fmt.Errorf("there is no point %q, only %s", name, strings.Join(Names(), ", "))
	}
	action, when, counted := strings.Cut(rest, "@")
	r = rule{name: name, at: 1}
	if counted {
		if r.at, err = parseWhen(when); err != nil {
			return r, err
		}
	}
	var argument string
	r.action, argument, _ = strings.Cut(action, ":")
	switch r.action {
	case "kill", "stop", "panic", "exit":
		if argument != "" {
			return r, fmt.Errorf("%s takes no argument", r.action)
		}
		return r, nil
	case "sleep":
		r.from, r.to, err = parseSleep(argument)
		return r, err
	}
	return r, fmt.Errorf("there is no action %q, only kill, stop, sleep:DURATION, panic and exit", r.action)
}

func parseWhen(text string) (int64, error) {
	if text == "*" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("hit %q is neither * nor a number from 1", text)
	}
	return n, nil
}

func parseSleep(text string) (from, to time.Duration, err error) {
	first, second, ranged := strings.Cut(text, "-")
	if from, err = time.ParseDuration(first); err != nil {
		return 0, 0, fmt.Errorf("sleep: %w", err)
	}
	to = from
	if ranged {
		if to, err = time.ParseDuration(second); err != nil {
			return 0, 0, fmt.Errorf("sleep: %w", err)
		}
	}
	if from < 0 || to < from {
		return 0, 0, fmt.Errorf("sleep: %s is not a time to sleep", text)
	}
	return from, to, nil
}

// parseOffset reads the clock's offset; empty is none.
func parseOffset(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", ClockVariable, err)
	}
	return d, nil
}
