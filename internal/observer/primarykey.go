package observer

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

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
	j := &journal{input: &input{spec: s, src: src}}
	err := j.goOnFrom(c)
	if err == nil {
		q.Key, err = j.primaryKey(ctx)
	}
	return q, err
}

func noKey(table string) error {
	return &Fault{Class: ClassQuery, Err: fmt.Errorf("no primary key of %s is seen; write key, with the columns that no two rows share", table)}
}

// findKey takes the primary key of the table where the configuration leaves the key out.
// The rows of a stream keep their keys: if those were made of other columns, a person has
// to decide, before the definition is replaced by one with the key that was found. Both it
// and the fingerprint are those of the same key written out, as it may have been before.
func (j *journal) findKey(ctx context.Context) error {
	if j.key = j.spec.Query.Key; len(j.key) > 0 {
		j.fingerprint = fingerprint(j.spec)
		return nil
	}
	found, err := j.primaryKey(ctx)
	if err != nil {
		return err
	}
	j.key, j.spec.Query.Key = j.asWritten(found), found
	j.fingerprint = j.fingerprintBy(j.key)
	if err := j.checkFingerprint(); err != nil {
		return fmt.Errorf("%w; if only the key was left out, which is now the primary key (%s), write it as before", err, strings.Join(found, ", "))
	}
	return nil
}

// primaryKey finds a primary key of which the keys of the stream may be made.
func (j *journal) primaryKey(ctx context.Context) ([]string, error) {
	found, err := j.src.PrimaryKey(ctx, j.spec.Query)
	if err != nil {
		return nil, failed(ctx, "look for the primary key", err)
	}
	return found, j.checkKey(found)
}

// checkKey compares a primary key with the columns of which the stream has made keys.
func (j *journal) checkKey(found []string) error {
	var before []string
	for _, c := range j.keys {
		before = append(before, c.Name)
	}
	table, write := j.spec.Query.Table, strings.Join(j.asWritten(before), ", ")
	switch {
	case len(before) == 0 || j.cursor.Rows == 0 || slices.Equal(before, found):
		if len(found) == 0 {
			return noKey(table)
		}
		return nil
	case len(found) == 0:
		return fmt.Errorf("%w: the keys of this stream are the primary key of %s, which is not seen any more; write `key: [%s]` to go on with the same rows",
			ErrQueryChanged, table, write)
	}
	return fmt.Errorf("%w: the primary key of %s is (%s), and the keys of this stream are made of (%s); write `key: [%s]` to go on with the same rows, "+
		"or run `observerd observers reset %s --forget` to begin anew by the primary key",
		ErrQueryChanged, table, strings.Join(found, ", "), strings.Join(before, ", "), write, j.spec.Stream)
}

// asWritten returns a key of the catalogue's names as the configuration wrote it when the
// cursor was written: names fold. Rows are read by the names of the catalogue.
func (j *journal) asWritten(found []string) []string {
	for _, fold := range []func(string) string{strings.ToLower, strings.ToUpper} {
		key := make([]string, len(found))
		for i, name := range found {
			key[i] = fold(name)
		}
		if j.fingerprintBy(key) == j.cursor.Fingerprint {
			return key
		}
	}
	return found
}

func (j *journal) fingerprintBy(key []string) string {
	s := j.spec
	s.Query.Key = key
	return fingerprint(s)
}
