package liveness

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// TestDetector goes through rows of looks. Each is given by when it began, in
// milliseconds, and lasts 10 ms; who is absent then comes with its mark.
func TestDetector(t *testing.T) {
	t.Parallel()
	type look struct {
		at     int
		absent map[string]string
		dead   bool // "a" is
	}
	a := func(mark string) map[string]string { return map[string]string{"a": mark} }
	for name, looks := range map[string][]look{
		"absent for a second":              {{0, a("1"), false}, {500, a("1"), false}, {1005, a("1"), false}, {1010, a("1"), true}, {1500, a("1"), true}},
		"one look is not enough":           {{0, a("1"), false}},
		"came back in between":             {{0, a("1"), false}, {500, nil, false}, {1000, a("1"), false}, {1500, a("1"), false}, {2010, a("1"), true}},
		"a renewal is a sign of life":      {{0, a("1"), false}, {900, a("2"), false}, {1500, a("2"), false}, {1800, a("3"), false}, {2700, a("3"), false}, {2810, a("3"), true}},
		"what was not seen does not count": {{0, a("1"), false}, {4000, a("1"), false}, {5000, a("1"), false}, {5010, a("1"), true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := detector{absence: time.Second, gap: 2500 * time.Millisecond}
			start := time.Now()
			for _, l := range looks {
				began := start.Add(time.Duration(l.at) * time.Millisecond)
				if dead := j.look(began, began.Add(10*time.Millisecond), l.absent); dead["a"] != l.dead {
					t.Errorf("at %d ms dead is %t, want %t", l.at, dead["a"], l.dead)
				}
			}
		})
	}
}

func TestDetectorLooksAgainWhenASuspectIsDue(t *testing.T) {
	t.Parallel()
	j := detector{absence: time.Second, gap: time.Second}
	now := time.Now()
	if _, ok := j.next(now); ok {
		t.Error("there is nobody to judge")
	}
	j.look(now, now, map[string]string{"a": "1"})
	later := now.Add(300 * time.Millisecond)
	j.look(later, later, map[string]string{"a": "1", "b": "1"})
	if at, ok := j.next(later); !ok || !at.Equal(now.Add(time.Second)) {
		t.Errorf("next judgement at %s, want a second after the first look", at.Sub(now))
	}
	j.reset()
	if _, ok := j.next(later); ok {
		t.Error("suspicions outlived the reset")
	}
}

func TestUpdateWakesThoseConcerned(t *testing.T) {
	t.Parallel()
	order, wes := LockID{"order", "DEFAULT"}, LockID{"wes", "DEFAULT"}
	held := map[LockID]standing{order: {term: "1"}, wes: {term: "2"}}
	for name, tc := range map[string]struct {
		locks      map[LockID]standing
		gone       map[string]bool
		order, wes bool
	}{
		"nothing happened":       {locks: held},
		"released":               {locks: map[LockID]standing{wes: {term: "2"}}, order: true},
		"passed on":              {locks: map[LockID]standing{order: {term: "3"}, wes: {term: "2"}}, order: true},
		"expired":                {locks: map[LockID]standing{order: {term: "1", expired: true}, wes: {term: "2"}}, order: true},
		"a node was found dead":  {locks: held, gone: map[string]bool{"boot": true}, order: true, wes: true},
		"the same node, of late": {locks: held, gone: map[string]bool{"known": true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n members
			request := func(id LockID) lock.Request { return lock.Request{Key: id.Key, Region: id.Region} }
			if n.Freed(request(order)) != nil {
				t.Error("a channel while nobody watches")
			}
			n.update(map[string]bool{"known": true}, held)
			waits := map[string]<-chan struct{}{"order": n.Freed(request(order)), "wes": n.Freed(request(wes))}
			n.update(tc.gone, tc.locks)
			for key, want := range map[string]bool{"order": tc.order, "wes": tc.wes} {
				woken := false
				select {
				case <-waits[key]:
					woken = true
				default:
				}
				if woken != want {
					t.Errorf("%s: woken is %t, want %t", key, woken, want)
				}
			}
			if !n.Gone("boot") == tc.gone["boot"] {
				t.Error("who is gone is not known")
			}
		})
	}
}

func TestBlindNodeWakesEverybody(t *testing.T) {
	t.Parallel()
	var n members
	n.update(map[string]bool{"b": true}, nil)
	wait := n.Freed(lock.Request{Key: "order", Region: "DEFAULT"})
	n.forget()
	<-wait
	if n.Gone("b") || n.Freed(lock.Request{Key: "order"}) != nil {
		t.Error("something is known without looking")
	}
}
