package observer

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"
)

// identityKept is for how long a database that was replaced is remembered.
const identityKept = time.Hour

// identityHistory has the databases that were the cursor's, and when each answered
// last. A new one is not recorded before it is the cursor's: the poll that notices it
// may fail. The zero value is ready.
type identityHistory struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// record notes that the cursor's database has answered.
func (h *identityHistory) record(id string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.last, func(_ string, last time.Time) bool { return at.Sub(last) >= identityKept })
	if h.last == nil {
		h.last = make(map[string]time.Time)
	}
	h.last[id] = at
}

// isBack reports whether a database that answers now was the cursor's not long
// ago. While the one in its place answers too, it is remembered for longer; a
// database that answers alone is followed after a while.
func (h *identityHistory) isBack(id, known string, at time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	last, found := h.last[id]
	if !found || at.Sub(last) >= identityKept {
		return false
	}
	if h.last[known].After(last) {
		h.last[id] = at
	}
	return true
}

// readIdentity reports whether the source is another database than the cursor's. Only
// two identities of one kind can tell: a source may learn to say more of itself. After
// a change in the configuration it is another one in any case, because one database
// may have many tables of a name.
func (o origin) readIdentity(ctx context.Context) (replaced bool, err error) {
	id, err := o.src.Identity(ctx)
	if err != nil {
		return false, failed(ctx, "read identity", err)
	}
	known := o.cursor.Marks.Identity
	switch {
	case known == changedSource:
		o.next.Marks.Identity = id
		return true, nil
	case id == "":
		return false, nil
	}
	o.next.Marks.Identity = id
	if id == known || identityKind(id) != identityKind(known) {
		o.identities.record(id, o.at)
		return false, nil
	}
	if o.identities.isBack(id, known, o.at) {
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

// recogniseSource begins anew if the source was replaced or restored, or if the
// configuration names another one: the marks say nothing about its rows. What was
// observed stays, so only rows that differ or are new become events. The marks are
// committed with the identity before rows are read, or the next poll would not know
// if this one dies.
func (o origin) recogniseSource(ctx context.Context) error {
	replaced, err := o.readIdentity(ctx)
	if err != nil || !replaced {
		return err
	}
	o.next.Marks.Form = ""
	if o.cursor.Marks.Identity == changedSource {
		o.next.Low = "" // The marks of another kind of source do not compare.
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

// beginning is where the reading of a replaced source begins: where the stream began,
// or the mark if it is below that because time went back. A history that was left out
// makes no events. Empty is the beginning of the source.
func (o origin) beginning(ctx context.Context) (string, error) {
	began, err := o.beganAt(ctx)
	if err != nil {
		return "", err
	}
	if o.next.Low != "" && o.src.Compare(o.next.Low, began) < 0 {
		return o.next.Low, nil
	}
	return began, nil
}

// beganAt is the start of the stream as a cursor, remembered for [Start.Now].
func (o origin) beganAt(ctx context.Context) (string, error) {
	switch start := o.spec.Start; {
	case start.Now && start.Began != nil:
		began, err := start.Began(ctx, o.spec.Stream)
		if err != nil {
			return "", failed(ctx, "read where the stream began", err)
		}
		return o.src.Restate(began, o.next.Marks.Form), nil
	case !start.At.IsZero():
		return o.cursorAt(ctx, start.At)
	}
	return "", nil
}
