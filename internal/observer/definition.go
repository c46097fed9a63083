package observer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/fn"
)

// readCursor checks that the cursor belongs to the definition and the query.
func (j *journal) readCursor(ctx context.Context) error {
	c, err := j.st.Cursor(ctx, j.spec.Stream)
	if err != nil {
		return failed(ctx, "read cursor", err)
	}
	j.start = c
	if err := j.goOnFrom(c); err != nil {
		return err
	}
	if err := j.findKey(ctx); err != nil {
		return err
	}
	if err := j.checkHashes(); err != nil {
		return err
	}
	if err := j.define(ctx); err != nil {
		return err
	}
	if err := j.checkFingerprint(); err != nil {
		return err
	}
	j.next.Fingerprint = j.fingerprint
	return nil
}

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
		return fmt.Errorf("%w: theirs was set at %s, after this configuration was loaded, or this is a command beside nodes; "+
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

// fingerprint identifies what a cursor and the remembered keys belong to. The
// columns are not part of it: another choice of columns makes new versions of
// the same rows, and that is what it looks like to a consumer.
func fingerprint(s Spec, key []string) string {
	q := s.Query
	sum := sha256.Sum256([]byte(encode([]any{q.Table, q.SQL, key, q.Timestamp, s.Detect})))
	return hex.EncodeToString(sum[:16])
}

func (j *journal) checkFingerprint() error {
	if j.cursor.Fingerprint == "" || j.cursor.Fingerprint == j.fingerprint {
		return nil
	}
	return fmt.Errorf("%w: to start over, run `observerd observers reset %s`, "+
		"and with --keep-cursor to continue where it was", ErrQueryChanged, j.spec.Stream)
}

// WithKey returns the query with the primary key of its table if it names no key. That
// there is none is a failure of class query.
func WithKey(ctx context.Context, src Source, q Query) (Query, error) {
	return WithKeyOf(ctx, src, Spec{Query: q}, Cursor{})
}

// WithKeyOf is [WithKey] for a stream that has come to this cursor. That its keys are made
// of other columns is an [ErrQueryChanged], as in a poll.
func WithKeyOf(ctx context.Context, src Source, s Spec, c Cursor) (Query, error) {
	q := s.Query
	if len(q.Key) > 0 {
		return q, nil
	}
	keys, err := DecodeKeyForm(c.Marks.KeyForm)
	if err == nil {
		q.Key, err = primaryKey(ctx, src, s, c, keys)
	}
	return q, err
}

// findKey takes the primary key of the table where the configuration leaves the key out.
// The rows of a stream keep their keys: if those were made of other columns, a person has
// to decide, before the definition is replaced by one with the key that was found. Both it
// and the fingerprint are those of the same key written out, as it may have been before.
func (j *journal) findKey(ctx context.Context) error {
	if j.key = j.spec.Query.Key; len(j.key) > 0 {
		j.fingerprint = fingerprint(j.spec, j.key)
		return nil
	}
	found, err := primaryKey(ctx, j.src, j.spec, j.cursor, j.keys)
	if err != nil {
		return err
	}
	j.key, j.spec.Query.Key = asWritten(j.spec, j.cursor, found), found
	j.fingerprint = fingerprint(j.spec, j.key)
	if err := j.checkFingerprint(); err != nil {
		return fmt.Errorf("%w; if only the key was left out, which is now the primary key (%s), set it as before", err, strings.Join(found, ", "))
	}
	return nil
}

// primaryKey finds a primary key of which the keys of the stream may be made.
func primaryKey(ctx context.Context, src Source, s Spec, c Cursor, keys KeyForm) ([]string, error) {
	found, err := src.PrimaryKey(ctx, s.Query)
	if err != nil {
		return nil, failed(ctx, "look for the primary key", err)
	}
	return found, checkKey(s, c, keys, found)
}

// checkKey compares a primary key with the columns of which the stream has made keys.
func checkKey(s Spec, c Cursor, keys KeyForm, found []string) error {
	before := fn.Each(keys, func(c KeyColumn) string { return c.Name })
	table, write := s.Query.Table, strings.Join(asWritten(s, c, before), ", ")
	switch {
	case len(before) == 0 || c.Rows == 0 || slices.Equal(before, found):
		if len(found) == 0 {
			return &Fault{Class: ClassQuery, Err: fmt.Errorf("no primary key of %s is seen; set key to columns that identify a row", table)}
		}
		return nil
	case len(found) == 0:
		return fmt.Errorf("%w: the keys of this stream are the primary key of %s, which is not seen any more; use `key: [%s]` to continue with the same rows",
			ErrQueryChanged, table, write)
	}
	return fmt.Errorf("%w: the primary key of %s is (%s), and the keys of this stream are made of (%s); use `key: [%s]` to continue with the same rows, "+
		"or run `observerd observers reset %s --forget` to start over with the primary key",
		ErrQueryChanged, table, strings.Join(found, ", "), strings.Join(before, ", "), write, s.Stream)
}

// asWritten returns a key of the catalogue's names as the configuration wrote it when the
// cursor was written: names fold. Rows are read by the names of the catalogue.
func asWritten(s Spec, c Cursor, found []string) []string {
	for _, fold := range []func(string) string{strings.ToLower, strings.ToUpper} {
		key := fn.Each(found, fold)
		if fingerprint(s, key) == c.Fingerprint {
			return key
		}
	}
	return found
}

// checkHashes refuses another hash of the columns of which the stream has made keys. It
// comes before a definition is replaced: a node with a wrong key must not keep the others
// from polling. [journal.checkColumns] knows the columns of a stream that remembers none.
func (j *journal) checkHashes() error {
	f := j.keys
	if len(f) == 0 {
		return nil
	}
	now := slices.Clone(f)
	for i, c := range now {
		now[i].Encoding = ""
		if j.spec.Query.Redaction(c.Name) == RedactHash {
			now[i] = c.Hashed(j.spec.Query.HashKey)
		}
	}
	return j.refuseRehashed(now)
}

func (j *journal) refuseRehashed(now []KeyColumn) error {
	if j.cursor.Rows == 0 || !j.keys.rehashed(now) {
		return nil
	}
	return fmt.Errorf("%w: its key is hashed in another way, by which the rows that were observed have other keys; "+
		"take the former redact and redact-key-file, or run `observerd observers reset %s --forget` to forget those rows", ErrQueryChanged, j.spec.Stream)
}

// checkColumns compares the columns of a read, and those of its key, with the cursor's,
// and replaces those if the difference is allowed. full says that all rows are being read.
func (j *journal) checkColumns(now []Column, key []KeyColumn, full bool) error {
	if now == nil {
		return nil // A source that knows no types.
	}
	if err := j.refuseRehashed(key); err != nil {
		return err
	}
	before, err := decodeColumns(j.next.Marks.Columns)
	if err != nil {
		return err
	}
	found := Refusal{Kind: RefusalColumns, Columns: EncodeColumns(now)}
	changes := columnChanges(j.spec.Query, before, now)
	if before != nil { // After a reset any columns are allowed.
		changes = append(changes, keyChanges(before, j.keys, key)...)
	}
	added, err := j.addedColumns(now, full)
	if err != nil {
		return err
	}
	advice := "if the consumers of its events can take that"
	if len(added) > 0 {
		advice = "set `columns` to leave it out, or " + advice
		if len(changes) == 0 {
			found.Kind = RefusalAdded
		}
	}
	accepted := (j.isAccepted(RefusalColumns) || j.isAccepted(RefusalAdded)) && j.accepted.Columns == found.Columns
	if changes = append(changes, added...); len(changes) > 0 && !accepted {
		found.Text = strings.Join(changes, ", ")
		return j.refuse(ErrColumnsChanged, found, advice)
	}
	j.next.Marks.Columns = found.Columns
	order, err := DecodeOrder(j.next.Marks.Order)
	if err != nil {
		return err
	}
	names := fn.Each(now, func(c Column) string { return c.Name })
	order = append(order, fn.Only(names, func(name string) bool { return !slices.Contains(order, name) })...)
	j.next.Marks.Order = encode(order) // What is left out for a while keeps its place.
	if full || before == nil {
		j.next.Marks.FullColumns = ""
		if len(j.spec.Query.Columns) == 0 {
			j.next.Marks.FullColumns = found.Columns
		}
	}
	j.keys = key
	return nil
}

// addedMost is how many rows may become events because a column was added.
const addedMost = 10

// addedColumns describes the columns that the last reading of all rows lacked, if they make
// events of rows that are known. Columns that the configuration names are its choice.
func (j *journal) addedColumns(now []Column, full bool) (added []string, err error) {
	before, err := decodeColumns(j.next.Marks.FullColumns)
	if before == nil || !full || len(j.spec.Query.Columns) > 0 || j.spec.Detect == DetectNew || j.cursor.Live <= addedMost {
		return nil, err
	}
	for _, c := range now {
		if !slices.ContainsFunc(before, func(b Column) bool { return b.Name == c.Name }) {
			added = append(added, fmt.Sprintf("column %q (%s) was added, which makes an event of each row", c.Name, c.Type))
		}
	}
	return added, nil
}

// keyChanges describes which columns of the key, besides those of the data, are of
// another type now. Where the type is unknown, another rule of writing counts.
func keyChanges(data []Column, before KeyForm, now []KeyColumn) (changes []string) {
	if !before.isOf(now) {
		return nil
	}
	for i, c := range before {
		told := c.Type != "" && now[i].Type != "" && slices.ContainsFunc(data, func(d Column) bool { return d.Name == c.Name })
		if !told && (c.Type != now[i].Type || c.Rule != now[i].Rule) {
			changes = append(changes, fmt.Sprintf("column %q of the key was %s and is %s",
				c.Name, cmp.Or(c.Type, "without a type"), cmp.Or(now[i].Type, "without a type")))
		}
	}
	return changes
}

// columnChanges describes which columns are missing or of another type. If the
// configuration names columns, a missing one is its choice: a column that the source
// lacks fails the query. So is another redaction. An unknown type is no other type.
func columnChanges(q Query, before, now []Column) (changes []string) {
	for _, b := range before {
		i := slices.IndexFunc(now, func(c Column) bool { return c.Name == b.Name })
		switch {
		case i < 0 && q.Redaction(b.Name) == RedactDrop:
		case i < 0 && len(q.Columns) == 0:
			changes = append(changes, fmt.Sprintf("column %q (%s) is missing", b.Name, b.Type))
		case i >= 0 && now[i].redaction() != b.redaction():
		case i >= 0 && now[i].Type != b.Type && now[i].Type != "" && b.Type != "":
			changes = append(changes, fmt.Sprintf("column %q was %s and is %s", b.Name, b.Type, now[i].Type))
		}
	}
	return changes
}
