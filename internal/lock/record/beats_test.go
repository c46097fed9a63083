package record_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/record"
)

// beating is a store with beats. A test says what happens before a record is written.
type beating struct {
	*store
	beats   map[string]int
	writing func()
	refuses bool // beats
}

func (b *beating) beaten(r record.Record) record.Record {
	if n := b.beats[r.Term]; r.Term != "" && n > 0 {
		r.Version = fmt.Sprint(r.Version, " ", n)
	}
	return r
}

func (b *beating) Get(ctx context.Context, region, key string) (record.Record, error) {
	r, err := b.store.Get(ctx, region, key)
	return b.beaten(r), err
}

func (b *beating) Put(ctx context.Context, r record.Record) (record.Record, error) {
	if b.writing != nil {
		b.writing()
	}
	r.Version, _, _ = strings.Cut(r.Version, " ")
	stored, err := b.store.Put(ctx, r)
	return b.beaten(stored), err
}

func (b *beating) Beat(_ context.Context, r record.Record) (string, error) {
	if b.refuses {
		return "", errUnanswered
	}
	b.beats[r.Term]++
	r.Version, _, _ = strings.Cut(r.Version, " ")
	return b.beaten(r).Version, b.answered("beat")
}

func (b *beating) Version(_ context.Context, r record.Record) (string, error) {
	r.Version, _, _ = strings.Cut(r.Version, " ")
	return b.beaten(r).Version, b.answered("version")
}

func (b *beating) provider() *record.Provider {
	return record.New(record.Options{Records: b, Beats: b, Capabilities: lock.Capabilities{Name: "beating"}})
}

// The machine of a holder was asleep, its clock with it, and wakes between the last look of the
// process that takes its lock and the write of that one.
func TestHolderComesBackWhileItsLockIsTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &beating{store: new(store), beats: make(map[string]int)}
		holder, taker := b.provider(), b.provider()
		g := acquire(t, holder, want("order", "asleep"))
		_ = refused(t, taker, want("order", "taker"))
		time.Sleep(time.Minute)
		b.writing = func() { b.beats[g.Term]++ }
		if left := refused(t, taker, want("order", "taker")); left != time.Minute {
			t.Errorf("%s are left", left)
		}
		b.writing = nil
		if got, err := holder.Renew(t.Context(), []lock.Grant{g}); err != nil || got[0] != lock.Lost {
			t.Errorf("renewal of a lock that nobody has: %v, %v", got, err)
		}
		time.Sleep(time.Minute - time.Millisecond)
		_ = refused(t, taker, want("order", "taker"))
		time.Sleep(time.Millisecond)
		acquire(t, taker, want("order", "taker"))
	})
}

func TestCallsOfABeat(t *testing.T) {
	t.Parallel()
	b := &beating{store: new(store), beats: make(map[string]int)}
	p := b.provider()
	g := acquire(t, p, want("order", "a"))
	var calls []string
	b.answer = func(call string) error {
		if calls = append(calls, call); call == "beat" && len(calls) == 1 {
			return errUnanswered
		}
		return nil
	}
	for range 2 {
		if got, err := p.Renew(t.Context(), []lock.Grant{g}); err != nil || got[0] != lock.Renewed {
			t.Errorf("renewal: %v, %v", got, err)
		}
	}
	if got := fmt.Sprint(calls); got != "[beat get beat get]" {
		t.Errorf("calls are %s", got)
	}
}

// A beat is carried out, and the read after it fails. The next one is refused: what is read then is
// the first one, which others have seen for as long.
func TestEarlierBeatIsNoRenewal(t *testing.T) {
	t.Parallel()
	b := &beating{store: new(store), beats: make(map[string]int)}
	p := b.provider()
	g := acquire(t, p, want("order", "a"))
	b.answer = func(call string) error {
		if call == "get" {
			return errUnanswered
		}
		return nil
	}
	if got, err := p.Renew(t.Context(), []lock.Grant{g}); err == nil || got[0] != lock.Unknown {
		t.Errorf("renewal that is not read back: %v, %v", got, err)
	}
	b.answer = nil
	b.refuses = true
	if got, err := p.Renew(t.Context(), []lock.Grant{g}); err == nil || got[0] != lock.Unknown {
		t.Errorf("renewal by a beat that was refused: %v, %v", got, err)
	}
	b.refuses = false
	if got, err := p.Renew(t.Context(), []lock.Grant{g}); err != nil || got[0] != lock.Renewed {
		t.Errorf("renewal: %v, %v", got, err)
	}
}

// The store carries out a beat, and shows it to nobody.
func TestBeatThatNobodySeesRenewsNothing(t *testing.T) {
	t.Parallel()
	p := record.New(record.Options{Records: new(store), Beats: unseen{}, Capabilities: lock.Capabilities{Name: "unseen"}})
	g := acquire(t, p, want("order", "a"))
	if got, err := p.Renew(t.Context(), []lock.Grant{g}); err == nil || got[0] != lock.Unknown {
		t.Errorf("renewal: %v, %v", got, err)
	}
}

type unseen struct{}

func (unseen) Beat(context.Context, record.Record) (string, error) { return "beaten", nil }
func (unseen) Version(_ context.Context, r record.Record) (string, error) {
	return r.Version, nil
}
