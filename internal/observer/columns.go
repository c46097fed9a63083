package observer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// EncodeColumns writes columns as the cursor remembers them:
// [["order_id","bigint"],…], empty for none.
func EncodeColumns(columns []Column) string {
	if len(columns) == 0 {
		return ""
	}
	pairs := make([][2]string, len(columns))
	for i, c := range columns {
		pairs[i] = [2]string{c.Name, c.Type}
	}
	return encode(pairs)
}

func decodeColumns(text string) (columns []Column, err error) {
	pairs, err := decode[[][2]string](text, "columns")
	for _, pair := range pairs {
		columns = append(columns, Column{Name: pair[0], Type: pair[1]})
	}
	return columns, err
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

// sameColumns leaves the order aside.
func sameColumns(a, b []Column) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(c Column) bool { return !slices.Contains(b, c) })
}
