package observer

import (
	"encoding/json"
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
	text, err := json.Marshal(pairs)
	if err != nil {
		panic(err) // Strings always encode.
	}
	return string(text)
}

func decodeColumns(text string) ([]Column, error) {
	if text == "" {
		return nil, nil
	}
	var pairs [][2]string
	if err := json.Unmarshal([]byte(text), &pairs); err != nil {
		return nil, fmt.Errorf("remembered columns: %w", err)
	}
	columns := make([]Column, len(pairs))
	for i, pair := range pairs {
		columns[i] = Column{Name: pair[0], Type: pair[1]}
	}
	return columns, nil
}

// checkColumns compares the columns of a read with those that are remembered,
// and remembers those of the read where they may differ.
func (p *poll) checkColumns(now []Column) error {
	if now == nil {
		return nil // A source that knows no types.
	}
	before, err := decodeColumns(p.columns)
	if err != nil {
		return err
	}
	found := EncodeColumns(now)
	changes := p.columnChanges(before, now)
	if accepted := p.isAccepted(RefusalColumns) && p.accepted.Columns == found; len(changes) > 0 && !accepted {
		return p.refuse(ErrColumnsChanged, Refusal{Kind: RefusalColumns, Columns: found, Text: strings.Join(changes, ", ")},
			"if the consumers of its events can take that")
	}
	if !sameColumns(before, now) {
		p.columns = found
	}
	return nil
}

// columnChanges describes what the source has taken away or made another. A
// column that a configuration has named and names no more is its own choice:
// where it names columns, the source cannot take one away unnoticed, because
// the query fails. A type that the source does not tell is no other type.
func (p *poll) columnChanges(before, now []Column) []string {
	var changes []string
	for _, b := range before {
		i := slices.IndexFunc(now, func(c Column) bool { return c.Name == b.Name })
		switch {
		case i < 0 && len(p.spec.Query.Columns) == 0:
			changes = append(changes, fmt.Sprintf("column %q (%s) is missing", b.Name, b.Type))
		case i >= 0 && now[i].Type != b.Type && now[i].Type != "" && b.Type != "":
			changes = append(changes, fmt.Sprintf("column %q was %s and is %s", b.Name, b.Type, now[i].Type))
		}
	}
	return changes
}

// sameColumns leaves the order aside.
func sameColumns(a, b []Column) bool {
	if len(a) != len(b) {
		return false
	}
	for _, c := range a {
		if !slices.Contains(b, c) {
			return false
		}
	}
	return true
}
