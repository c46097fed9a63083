package contend_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"
)

// counter is what a lock protects. It remembers the greatest fence, and refuses a smaller one.
type counter struct {
	fence, value int64
	term         string
}

// resource has a counter for each key. A writer reads it and writes one more, each time with
// its fence: then no write is lost, however long a writer sleeps in between.
type resource struct {
	*httptest.Server

	mu       sync.Mutex
	counters map[string]*counter
	// written is when each writer last wrote.
	written map[string]time.Time
	refused int
	// trusting are those that were refused and trusted their lease.
	trusting []string
	// asleep suspends a writer while the counter is read, and wakes it; nil where nobody is
	// to be suspended.
	asleep func(writer string) (wake func())
	faults []string
	// moved is closed and made anew when a counter gets a greater fence.
	moved chan struct{}
}

func newResource(t *testing.T) *resource {
	r := &resource{counters: make(map[string]*counter), written: make(map[string]time.Time), moved: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{key}", r.read)
	mux.HandleFunc("POST /{key}", r.write)
	mux.HandleFunc("PUT /{key}", func(_ http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.trusting = append(r.trusting, fmt.Sprintf("%s was refused at %s, and trusts its lease %s", q.FormValue("writer"), q.PathValue("key"), q.FormValue("fence")))
	})
	r.Server = httptest.NewServer(mux)
	t.Cleanup(r.Close)
	return r
}

func (r *resource) fault(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// admit returns the counter of a request, locked, unless its fence is too small.
func (r *resource) admit(w http.ResponseWriter, q *http.Request) *counter {
	fence, err := strconv.ParseInt(q.FormValue("fence"), 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil
	}
	r.mu.Lock()
	c := r.counters[q.PathValue("key")]
	if c == nil {
		c = new(counter)
		r.counters[q.PathValue("key")] = c
	}
	if fence < c.fence {
		r.refused++
		r.mu.Unlock()
		http.Error(w, "an older fence", http.StatusConflict)
		return nil
	}
	term := q.FormValue("term")
	if fence == c.fence && term != c.term {
		r.faults = append(r.faults, fmt.Sprintf("the fence %d was given twice", fence))
	}
	if fence > c.fence {
		close(r.moved)
		r.moved = make(chan struct{})
	}
	c.fence, c.term = fence, term
	return c
}

func (r *resource) read(w http.ResponseWriter, q *http.Request) {
	c := r.admit(w, q)
	if c == nil {
		return
	}
	asleep, value, fence := r.asleep, c.value, c.fence
	r.asleep = nil
	r.mu.Unlock()
	if asleep != nil {
		wake := asleep(q.FormValue("writer"))
		r.overtaken(c, fence)
		wake()
	}
	fmt.Fprint(w, value)
}

// overtaken waits until another has the lock.
func (r *resource) overtaken(c *counter, fence int64) {
	late := time.After(time.Minute)
	for {
		r.mu.Lock()
		over, moved := c.fence > fence, r.moved
		r.mu.Unlock()
		if over {
			return
		}
		select {
		case <-moved:
		case <-late:
			r.fault("nobody has taken the lock of one who sleeps for a minute")
			return
		}
	}
}

func (r *resource) write(w http.ResponseWriter, q *http.Request) {
	c := r.admit(w, q)
	if c == nil {
		return
	}
	defer r.mu.Unlock()
	value, err := strconv.ParseInt(q.FormValue("value"), 10, 64)
	if err != nil || value != c.value+1 {
		r.faults = append(r.faults, fmt.Sprintf("%s writes %s over %d", q.FormValue("writer"), q.FormValue("value"), c.value))
	}
	c.value = value
	r.written[q.FormValue("writer")] = time.Now()
}

// wroteSince is how many writers have written since then.
func (r *resource) wroteSince(then time.Time) (writers int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range r.written {
		if at.After(then) {
			writers++
		}
	}
	return writers
}
