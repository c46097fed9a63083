package lock

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/fn"
)

// mostInCall bounds the leases that one call renews, so that it takes little time, and one
// that fails leaves the others renewed.
const mostInCall = 500

// loop starts renewals whenever one is due. It never waits for an answer, so that a
// call that hangs delays only the leases that it renews.
func (k *Keeper) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-k.wake:
		case <-timer.C:
		}
		due := k.due(time.Now())
		// The shortest TTL of a call limits its time.
		slices.SortFunc(due, func(a, b *Lease) int { return cmp.Compare(a.TTL(), b.TTL()) })
		for batch := range slices.Chunk(due, mostInCall) {
			k.work.Go(func() { k.renew(batch) })
		}
		timer.Reset(k.untilNext())
	}
}

// pace returns how long after a renewal of a lease with that TTL began the next one is due.
func (k *Keeper) pace(ttl time.Duration) time.Duration {
	if k.can.RenewEvery != nil {
		return k.can.RenewEvery(ttl)
	}
	return ttl / 3
}

// due returns the leases to renew now and marks them. When one is due, those that will
// be due soon are renewed with it, so that leases taken one after the other soon share
// their calls.
func (k *Keeper) due(now time.Time) []*Lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	var batch []*Lease
	anyDue := false
	for l := range k.leases {
		l.mu.Lock()
		soon := now
		if k.can.RenewEvery == nil {
			soon = now.Add(l.lives / 12)
		}
		if l.ended == nil && !l.renewing && !l.due.After(soon) {
			l.renewing = true
			batch = append(batch, l)
			anyDue = anyDue || !l.due.After(now)
		}
		l.mu.Unlock()
	}
	if anyDue {
		return batch
	}
	for _, l := range batch {
		l.mu.Lock()
		l.renewing = false
		l.mu.Unlock()
	}
	return nil
}

// RenewNow makes all leases due at once and does not wait for the answers. Other nodes
// see in the rows that this node lives. A renewal that already runs is not repeated.
func (k *Keeper) RenewNow() {
	now := time.Now()
	k.mu.Lock()
	for l := range k.leases {
		l.mu.Lock()
		if now.Before(l.due) {
			l.due = now
		}
		l.mu.Unlock()
	}
	k.mu.Unlock()
	k.wakeLoop()
}

// untilNext returns the time until the earliest renewal that does not run yet, and notes
// when that is.
func (k *Keeper) untilNext() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next = time.Now().Add(time.Hour) // A lease that is due sooner wakes the loop.
	for l := range k.leases {
		l.mu.Lock()
		if l.ended == nil && !l.renewing && l.due.Before(k.next) {
			k.next = l.due
		}
		l.mu.Unlock()
	}
	return max(time.Until(k.next), 0)
}

// renew renews the batch in one call and applies the answer to each lease.
func (k *Keeper) renew(batch []*Lease) {
	defer k.wakeLoop()
	grants := fn.Each(batch, (*Lease).Grant)
	began := time.Now()
	ctx, cancel := context.WithTimeout(k.ctx, renewTimeout(batch, began))
	defer cancel()
	renewals, err := k.provider.Renew(ctx, grants)
	k.logFailure(len(batch), err)
	for i, l := range batch {
		answer := Unknown
		if i < len(renewals) {
			answer = renewals[i]
		}
		l.renewed(answer, began, err == nil || answer != Unknown)
	}
}

// logFailure logs and counts a renewal that failed. Only the first in a row is a
// warning, since there may be several a second.
func (k *Keeper) logFailure(leases int, err error) {
	if err == nil || k.ctx.Err() != nil {
		k.failing.Store(false)
		return
	}
	k.metrics.renewals.WithLabelValues("error").Inc()
	level := slog.LevelWarn
	if k.failing.Swap(true) {
		level = slog.LevelDebug
	}
	k.log.Log(k.ctx, level, "Leases not renewed; trying again", "leases", leases, "err", err)
}

// renewTimeout returns how long a renewal of the batch may take: a quarter of the TTL,
// so that a call that hangs leaves time for another, and never longer than the leases
// are trusted.
func renewTimeout(batch []*Lease, now time.Time) time.Duration {
	d := maxAttempt
	for _, l := range batch {
		d = min(d, l.TTL()/4, l.trustedUntil().Sub(now))
	}
	return d
}

// renewed applies the answer to a renewal that began at that moment. Trust counts from
// then and not from the answer, which may have been slow. A lease that has ended stays
// ended.
func (l *Lease) renewed(answer Renewal, began time.Time, answered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewing = false
	if answered {
		l.keeper.metrics.renewals.WithLabelValues(answer.String()).Inc()
	}
	if l.ended != nil {
		l.gone = l.gone || answer == Lost
		return
	}
	switch answer {
	case Renewed:
		l.trusted = began.Add(trust(l.lives))
		l.due = began.Add(l.keeper.pace(l.lives))
		l.timer.Reset(time.Until(l.trusted))
	case Lost:
		l.gone = true
		_ = l.endLocked(ErrLost)
		l.keeper.lost(l, "taken, released or expired")
	default:
		pause := l.lives/24 + rand.N(l.lives/24+1)
		l.due = time.Now().Add(max(pause, 100*time.Millisecond))
	}
}

// lost logs and counts a lease that was lost. The lease stays with the keeper until its
// holder notices and releases it.
func (k *Keeper) lost(l *Lease, reason string) {
	k.metrics.lost.Inc()
	k.log.Warn("Lease lost", "lock", l.grant.Key, "name", l.grant.Name, "fence", l.grant.Fence, "reason", reason)
}
