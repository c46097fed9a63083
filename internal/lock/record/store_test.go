package record_test

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/internal/lock/record"
)

// store keeps records in memory. The zero value is ready.
type store struct {
	numbered bool

	mu      sync.Mutex
	writes  int64
	records map[at]record.Record
	former  map[at]record.Record // what the last writes have replaced
	// wrote is called for each record that is stored, with what it replaces.
	wrote func(before, now record.Record)
	// answer stands in for the answer to a call that was carried out; nil is the store's.
	answer func(call string) error
}

type at struct{ region, key string }

func (s *store) begin(ctx context.Context) (end func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	return s.mu.Unlock, nil
}

func (s *store) answered(call string) error {
	if s.answer == nil {
		return nil
	}
	return s.answer(call)
}

func (s *store) Get(ctx context.Context, region, key string) (record.Record, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return record.Record{}, err
	}
	defer end()
	return s.records[at{region, key}], s.answered("get")
}

func (s *store) Put(ctx context.Context, r record.Record) (record.Record, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return record.Record{}, err
	}
	defer end()
	before := s.records[at{r.Region, r.Key}]
	if before.Version != r.Version {
		return record.Record{}, cmp.Or(s.answered("put"), record.ErrConflict)
	}
	return s.store(r), s.answered("put")
}

func (s *store) store(r record.Record) record.Record {
	if s.records == nil {
		s.records, s.former = make(map[at]record.Record), make(map[at]record.Record)
	}
	before := s.records[at{r.Region, r.Key}]
	s.former[at{r.Region, r.Key}] = before
	s.writes++
	r.Version = "v" + strconv.FormatInt(s.writes, 10)
	if s.numbered {
		r.Revision = s.writes
	}
	s.records[at{r.Region, r.Key}] = r
	if s.wrote != nil {
		s.wrote(before, r)
	}
	return r
}

func (s *store) Delete(ctx context.Context, r record.Record) error {
	end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	before := s.records[at{r.Region, r.Key}]
	if before.Version != r.Version {
		return cmp.Or(s.answered("delete"), record.ErrConflict)
	}
	s.former[at{r.Region, r.Key}] = before
	delete(s.records, at{r.Region, r.Key})
	s.writes++
	if s.wrote != nil {
		s.wrote(before, record.Record{Region: r.Region, Key: r.Key})
	}
	return s.answered("delete")
}

func (s *store) List(ctx context.Context, region string) (all []record.Record, err error) {
	end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	for at, r := range s.records {
		if at.region == region {
			all = append(all, r)
		}
	}
	return all, s.answered("list")
}

// lagging returns what a reader sees who is a write behind.
func (s *store) lagging(region, key string) record.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.former[at{region, key}]
}

// expire makes the lease one that everybody has seen for long enough.
func (s *store) expire(g lock.Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.records[at{g.Region, g.Key}]; r.Term == g.Term {
		r.TTL = -1
		s.store(r)
	}
}

func (s *store) provider() *record.Provider {
	return record.New(record.Options{Records: s, Capabilities: lock.Capabilities{Name: "memory"}, Numbered: s.numbered})
}

var errUnanswered = errors.New("connection reset")

// losesAnswers loses the answers to two of three writes: that they were carried out, and that
// they were refused.
func losesAnswers() func(call string) error {
	var calls atomic.Int64
	return func(call string) error {
		if (call == "put" || call == "delete") && calls.Add(1)%3 > 0 {
			return errUnanswered
		}
		return nil
	}
}

func TestProviderKeepsTheContract(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		numbered bool
		answer   func(call string) error
	}{
		"counted":                     {false, nil},
		"numbered":                    {true, nil},
		"counted, with answers lost":  {false, losesAnswers()},
		"numbered, with answers lost": {true, losesAnswers()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locktest.Run(t, func(*testing.T) locktest.Harness {
				s := &store{numbered: c.numbered, answer: c.answer}
				return locktest.Harness{
					Provider:   func() lock.Provider { return s.provider() },
					MinTTL:     300 * time.Millisecond,
					Unanswered: c.answer != nil,
					Expire:     func(_ *testing.T, g lock.Grant) { s.expire(g) },
				}
			})
		})
	}
}
