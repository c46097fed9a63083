package locktest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

func foundBy(t *testing.T, h Harness) {
	p := h.Provider()
	finder := p.Capabilities().Finder
	reading, readers := lock.Shared, 2
	if !p.Capabilities().Modes {
		reading, readers = lock.Exclusive, 1
	}
	described := func(key, descriptor, node string, mode lock.Mode) lock.Request {
		r := h.request(node)
		r.Key, r.Name, r.Descriptor, r.Mode, r.Metadata = key, key, descriptor, mode, `{"purpose":"test"}`
		return r
	}
	want := map[string]lock.Grant{}
	for i := range 5 {
		r := described(fmt.Sprintf("page:fs_1:%d", i), fmt.Sprintf("lock:exclusive:page:writing:fs_1:%d", i), "a", lock.Exclusive)
		g := acquire(t, p, r)
		want[g.Term] = g
	}
	for range readers {
		g := acquire(t, p, described("schema:fs_1", "lock:shared:schema:reading:fs_1", "b", reading))
		want[g.Term] = g
	}
	released := acquire(t, p, described("audit:x", "lock:exclusive:audit:processing:x", "a", lock.Exclusive))
	release(t, p, released)

	var found []lock.Held
	q := lock.Query{Region: "DEFAULT", Limit: 3}
	for {
		page, err := finder.Find(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, page...)
		if len(page) < q.Limit {
			break
		}
		q.After = page[len(page)-1]
	}
	for _, f := range found {
		g, ok := want[f.Term]
		if !ok || f.Key != g.Key || f.Fence != g.Fence || f.Node != g.Node || f.Descriptor != g.Descriptor || f.Mode != g.Mode || f.Metadata != g.Metadata ||
			f.TTL != g.TTL || f.Age < 0 || f.Left <= 0 || f.Left > g.TTL || f.Waiting != 0 {
			t.Errorf("found %+v, want %+v", f, g)
		}
		delete(want, f.Term)
	}
	if len(want) > 0 || len(found) != 5+readers {
		t.Errorf("%d found, not found: %v", len(found), want)
	}
	long := acquire(t, p, described(strings.Repeat("page:fs_1:", 9), "lock:exclusive:page:reading:x", "d", lock.Exclusive))
	for key, mode := range map[string]lock.Mode{"page:over": lock.Exclusive, "schema:over": reading} {
		r := described(key, "lock:"+string(mode)+":page:reading:over", "c", mode)
		r.TTL = h.expiring("c").TTL
		h.expire(t, acquire(t, p, r))
	}
	over := []string{"page:over", "schema:over"}
	if h.Vanishes {
		over = nil
	}
	for name, tc := range map[string]struct {
		q    lock.Query
		most []string
	}{
		"by node":       {lock.Query{Node: "b"}, []string{"schema:fs_1"}},
		"by a part":     {lock.Query{Parts: []string{"page", "3"}}, []string{"page:fs_1:3"}},
		"by no pattern": {lock.Query{Parts: []string{"fs%1"}}, nil},
		"in no region":  {lock.Query{Node: "nobody"}, nil},
		"by the last":   {lock.Query{Parts: []string{"fs_1", "4"}}, []string{"page:fs_1:4"}},
		"by two in row": {lock.Query{Parts: []string{"writing:fs_1"}, Key: "page:fs_1:2"}, []string{"page:fs_1:2"}},
		"by the key":    {lock.Query{Key: "schema:fs_1"}, []string{"schema:fs_1"}},
		"by a long key": {lock.Query{Key: long.Key}, []string{long.Key}},
		"by no key":     {lock.Query{Key: "schema:fs"}, nil},
		"by age":        {lock.Query{OlderThan: time.Hour}, nil},
		"none is over":  {lock.Query{Expired: true, Node: "b"}, nil},
		"two are over":  {lock.Query{Expired: true, Node: "c"}, over},
	} {
		tc.q.Region, tc.q.Limit = "DEFAULT", 100
		page, err := finder.Find(t.Context(), tc.q)
		if err != nil {
			t.Fatal(err)
		}
		keys := []string(nil)
		for _, f := range page {
			keys = append(keys, f.Key)
		}
		slices.Sort(keys)
		// A provider may leave the parts to its caller.
		if keys = slices.Compact(keys); (len(tc.q.Parts) == 0 || tc.q.Key != "") && !slices.Equal(keys, tc.most) {
			t.Errorf("%s: %v, want %v", name, keys, tc.most)
		}
		for _, key := range tc.most {
			if !slices.Contains(keys, key) {
				t.Errorf("%s: %v, want %v among them", name, keys, tc.most)
			}
		}
	}
}
