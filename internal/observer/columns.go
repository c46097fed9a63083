package observer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

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
// and replaces those if the difference is allowed.
func (j *journal) checkColumns(now []Column, key []KeyColumn) error {
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
	changes := j.columnChanges(before, now)
	if before != nil { // After a reset any columns are allowed.
		changes = append(changes, j.keyChanges(before, key)...)
	}
	accepted := j.isAccepted(RefusalColumns) && j.accepted.Columns == found.Columns
	if len(changes) > 0 && !accepted {
		found.Text = strings.Join(changes, ", ")
		return j.refuse(ErrColumnsChanged, found, "if the consumers of its events can take that")
	}
	if !sameColumns(before, now) {
		j.next.Marks.Columns = found.Columns
	}
	j.keys = key
	return nil
}

// keyChanges describes which columns of the key, besides those of the data, are of
// another type now. Where the type is unknown, another rule of writing counts.
func (j *journal) keyChanges(data []Column, now []KeyColumn) (changes []string) {
	if !j.keys.isOf(now) {
		return nil
	}
	for i, c := range j.keys {
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
func (j *journal) columnChanges(before, now []Column) []string {
	var changes []string
	for _, b := range before {
		i := slices.IndexFunc(now, func(c Column) bool { return c.Name == b.Name })
		switch {
		case i < 0 && j.spec.Query.Redaction(b.Name) == RedactDrop:
		case i < 0 && len(j.spec.Query.Columns) == 0:
			changes = append(changes, fmt.Sprintf("column %q (%s) is missing", b.Name, b.Type))
		case i >= 0 && now[i].redaction() != b.redaction():
		case i >= 0 && now[i].Type != b.Type && now[i].Type != "" && b.Type != "":
			changes = append(changes, fmt.Sprintf("column %q was %s and is %s", b.Name, b.Type, now[i].Type))
		}
	}
	return changes
}
