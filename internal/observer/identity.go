package observer

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// isReplaced reports whether the source with this identity is another database than the
// cursor's. Only two identities of one kind can tell: a source may learn to say more of
// itself. After a change in the configuration it is another one in any case, because one
// database may have many tables of a name.
func (o origin) isReplaced(id string) (replaced bool, err error) {
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
			"use an address that leads to one of them, or run `observerd observers reset %s` where it was moved back on purpose, to read all rows again",
			ErrSourcesAlternate, o.spec.Stream)
	}
	return true, nil
}

// prepareBeside checks, for what reads beside the polls, that the cursor belongs to the
// query and the source.
func (o origin) prepareBeside(ctx context.Context) error {
	if err := o.readCursor(ctx); err != nil {
		return err
	}
	id, err := o.src.Identity(ctx)
	if err != nil {
		return failed(ctx, "read identity", err)
	}
	replaced, err := o.isReplaced(id)
	if err == nil && replaced {
		// That poll begins at the stream's start; the range below it is a sweep's.
		err = fmt.Errorf("%w: the next poll reads it from the start of the stream, and this continues after that", ErrSourceReplaced)
	}
	return err
}

func identityKind(id string) string {
	kind, _, _ := strings.Cut(id, ":")
	return kind
}

// recogniseSource begins anew if the source was replaced or restored, or if the
// configuration names another one: the marks say nothing about its rows. What was
// observed stays, so only rows that differ or are new become events. The marks are
// committed with the identity before rows are read, or the next poll would not know
// if this one dies. The horizon is read once more then: the form of the timestamps may be
// another.
func (o origin) recogniseSource(ctx context.Context) error {
	replaced, err := o.isReplaced(o.horizon.Identity)
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
	return o.readHorizon(ctx)
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
