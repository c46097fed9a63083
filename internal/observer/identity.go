package observer

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// acquainted is for how long a database that was replaced is remembered.
const acquainted = time.Hour

// acquaintances are the databases that were the cursor's, and when each has
// answered last. One that is not yet is none of them: a poll that has noticed
// it may fail before it has said so. The zero value is ready.
type acquaintances struct {
	mu  sync.Mutex
	met map[string]time.Time
}

// meet notes that the cursor's database has answered.
func (a *acquaintances) meet(id string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for other, last := range a.met {
		if at.Sub(last) >= acquainted {
			delete(a.met, other)
		}
	}
	if a.met == nil {
		a.met = make(map[string]time.Time)
	}
	a.met[id] = at
}

// isBack reports whether a database that answers now was the cursor's not long
// ago. It is remembered for longer where the one in its place goes on answering;
// one that answers alone is back for good, and followed after a while.
func (a *acquaintances) isBack(id, known string, at time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	last, met := a.met[id]
	if !met || at.Sub(last) >= acquainted {
		return false
	}
	if a.met[known].After(last) {
		a.met[id] = at
	}
	return true
}

// readIdentity asks the source who it is, and says whether it is another
// database than the cursor knows. Only two values of one kind can tell: a
// source that has learnt to say more about itself is no other source, nor is
// one of which nothing was known. One that the configuration has put in the place of
// another is another whatever it says: one database may have many tables of a name.
func (o origin) readIdentity(ctx context.Context) (replaced bool, err error) {
	id, err := o.src.Identity(ctx)
	if err != nil {
		return false, failed(ctx, "read identity", err)
	}
	known := o.cursor.Identity
	switch {
	case known == changedSource:
		o.next.identity = id
		return true, nil
	case id == "":
		return false, nil
	}
	o.next.identity = id
	if id == known || identityKind(id) != identityKind(known) {
		o.met.meet(id, o.at)
		return false, nil
	}
	if o.met.isBack(id, known, o.at) {
		return false, fmt.Errorf("%w: the one that has answered now was replaced less than an hour ago; "+
			"use an address that leads to one of them, or run `observerd observers reset %s --keep-cursor` where it was moved back on purpose",
			ErrSourcesAlternate, o.spec.Stream)
	}
	return true, nil
}

func identityKind(id string) string {
	kind, _, _ := strings.Cut(id, ":")
	return kind
}

// recogniseSource begins anew where the source was replaced or restored, or the
// configuration names another one: the marks say nothing about its rows. What was
// observed stays, so of the rows from the stream's beginning on only those that differ
// or that were never observed become events. The marks and the identity are committed
// together and first: a poll that dies after that is not the last to know.
func (o origin) recogniseSource(ctx context.Context) error {
	replaced, err := o.readIdentity(ctx)
	if err != nil || !replaced {
		return err
	}
	o.next.form = ""
	if o.cursor.Identity == changedSource {
		o.next.low = "" // It may be of another kind, whose marks do not compare.
	}
	low, err := o.beginning(ctx)
	if err != nil {
		return err
	}
	if err := o.readAgain(ctx, low); err != nil {
		return err
	}
	o.stats.Rewound = true
	o.log.LogAttrs(ctx, slog.LevelWarn, "Source is another database than the cursor knows; it is read again from where the stream began")
	return nil
}

// beginning is where a source is read from that is another one now: where its
// stream began, lest a history that was left out become events. A mark that is
// below that, because time has gone back, stays there: above it not all rows
// were compared. Empty is the beginning of the source.
func (o origin) beginning(ctx context.Context) (string, error) {
	began, err := o.beganAt(ctx)
	if err != nil {
		return "", err
	}
	if o.next.low != "" && o.src.Compare(o.next.low, began) < 0 {
		return o.next.low, nil
	}
	return began, nil
}

// beganAt is the start of the stream as a cursor. That of [Start.Now] was the
// moment of the first poll, and is remembered.
func (o origin) beganAt(ctx context.Context) (string, error) {
	switch start := o.spec.Start; {
	case start.Now && start.Began != nil:
		began, err := start.Began(ctx, o.spec.Stream)
		if err != nil {
			return "", failed(ctx, "read where the stream began", err)
		}
		return o.src.Restate(began, o.next.form), nil
	case !start.At.IsZero():
		return o.cursorAt(ctx, start.At)
	}
	return "", nil
}
