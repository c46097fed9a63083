package observer

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// define compares the observer's definition with that by which the cluster polls
// it. Two nodes with different ones would take each other's rows for changes, in
// turns. So a definition takes another's place once: when it was loaded after that
// was set. Otherwise this node leaves the observer alone.
//
// The new one is committed at once, and the fingerprint stays: whether the cursor
// belongs to its query is judged after that. So does the note that the source is
// another one now: a poll that dies before it has put the marks back is not the last
// to know.
func (j *journal) define(ctx context.Context) error {
	own, err := j.spec.Definition(ctx)
	c := j.cursor
	switch {
	case err != nil:
		return err
	case own == "" || own == c.Definition:
		return nil
	case c.Definition == "":
		j.next.definition = own
		return nil
	case !j.spec.Loaded().After(c.DefinedAt):
		return fmt.Errorf("%w: theirs was set at %s, after this configuration was loaded; "+
			"give all nodes one configuration, or restart this node to make its own the cluster's",
			ErrOtherDefinition, c.DefinedAt.UTC().Format(time.RFC3339))
	}
	j.next.definition = own
	ch := j.newChunk()
	ch.Fingerprint = c.Fingerprint
	if before := sourceOf(c.Definition); before != "" && before != sourceOf(own) {
		j.next.identity, ch.Identity = changedSource, changedSource
	}
	if err := j.commit(ctx, ch); err != nil {
		return err
	}
	j.log.LogAttrs(ctx, slog.LevelWarn, "The observer is defined in another way than before; nodes with the former definition leave it alone")
	return nil
}

// changedSource is the identity of a source that the configuration has put in the
// place of another, until a poll has begun to read it. No source has it.
const changedSource = "configuration:changed"

// sourceOf is the part of a definition that is the source's; empty for one that has
// none.
func sourceOf(definition string) string {
	source, _, ok := strings.Cut(definition, "/")
	if !ok {
		return ""
	}
	return source
}
