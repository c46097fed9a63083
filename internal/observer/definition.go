package observer

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// define compares the observer's definition with the cluster's. Two nodes with
// different ones would take each other's rows for changes, in turns. So a definition
// replaces another once, if it was loaded after that was set; otherwise this node
// leaves the observer alone.
//
// The new one is committed at once, together with the note that the source is another
// one: the next poll has to know if this one dies before it puts the marks back. The
// fingerprint stays, because it is checked after this.
func (j *journal) define(ctx context.Context) error {
	own, err := j.spec.Definition(ctx, j.key)
	c := j.cursor
	switch {
	case err != nil:
		return err
	case own == "" || own == c.Definition:
		return nil
	case c.Definition == "":
		j.next.Definition = own
		return nil
	case !j.spec.Loaded().After(c.DefinedAt):
		return fmt.Errorf("%w: theirs was set at %s, after this configuration was loaded; "+
			"give all nodes one configuration, or restart this node to make its own the cluster's",
			ErrOtherDefinition, c.DefinedAt.UTC().Format(time.RFC3339))
	}
	j.next.Definition = own
	if before := sourceOf(c.Definition); before != "" && before != sourceOf(own) {
		j.next.Marks.Identity = changedSource
	}
	if err := j.commit(ctx, Chunk{}); err != nil {
		return err
	}
	j.log.LogAttrs(ctx, slog.LevelWarn, "The observer is defined in another way than before; nodes with the former definition leave it alone")
	return nil
}

// changedSource is the identity of a source that the configuration has replaced, until
// a poll begins to read the new one. No source has it.
const changedSource = "configuration:changed"

// sourceOf is the source's part of a definition; empty for none.
func sourceOf(definition string) string {
	return definition[:max(0, strings.Index(definition, "/"))]
}
