package oracle

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// KeyOrder implements [observer.Source].
func (s *Source) KeyOrder(ctx context.Context, q observer.Query) (order string, err error) {
	err = s.session(ctx, func(ctx context.Context, c *session) error {
		p, _, err := c.plan(ctx, q, observer.Range{ByKey: true})
		order = p.selection.OrderID(p.order.parts, nil)
		return err
	})
	return order, err
}

// keyIndex is an index by which a table is read, and the parts of the key in its
// order; nil for none.
type keyIndex struct {
	name  string
	parts []int
}

// hintName is what a hint may hold: a comment ends at nothing in it.
var hintName = regexp.MustCompile(`^[A-Za-z0-9_$#]+$`)

const charsetSQL = "SELECT p.VALUE FROM NLS_DATABASE_PARAMETERS p WHERE p.PARAMETER = 'NLS_CHARACTERSET'"

// keyOrder finds the index that serves the key: the table itself where its rows are
// kept in that order, or else one that is unique. NULL comes behind all keys, where
// a read that goes on would leave it out, so there must be none.
func (c *session) keyOrder(ctx context.Context, p plan, indexes []index) (keyIndex, error) {
	text := false
	for _, i := range p.selection.Key {
		k := p.selection.Columns[i]
		if k.Nullable || keyBound(k, "") == "" {
			return keyIndex{}, nil
		}
		text = text || p.kinds[i] == kindText || p.kinds[i] == kindPadded
	}
	found := servesKey(p.selection, indexes)
	if found.parts == nil || !text {
		return found, nil
	}
	// The driver loses characters of other sets on their way to us and back.
	rows, err := c.rows(ctx, "read the character set", charsetSQL)
	if err != nil || len(rows) != 1 || rows[0][0] != "AL32UTF8" && rows[0][0] != "UTF8" {
		return keyIndex{}, err
	}
	return found, nil
}

func servesKey(s source.Selection, indexes []index) keyIndex {
	rank := func(i index) int {
		switch {
		case i.rows:
			return 0
		case i.unique:
			return 1
		}
		return 2
	}
	indexes = slices.SortedFunc(slices.Values(indexes), func(a, b index) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a.name, b.name))
	})
	for _, i := range indexes {
		if !i.plain || !hintName.MatchString(i.bare) {
			continue
		}
		if parts := s.KeyOrder([][]string{i.columns}); parts != nil {
			return keyIndex{i.bare, parts}
		}
	}
	return keyIndex{}
}

const (
	keyDateFormat = "S" + dateFormat
	keyWallFormat = "S" + wallFormat
)

// keyBound writes a bound as a value of a column of the key; it is empty for a type
// that cannot be gone on from. A text for a CHAR is made one, with which blanks at
// the end do not count. The sessions write decimal numbers with a point.
func keyBound(c source.Column, text string) string {
	switch c.Type {
	case "NUMBER", "FLOAT":
		return "TO_NUMBER(" + text + ")"
	case "VARCHAR2", "VARCHAR":
		return cmp.Or(text, "''")
	case "CHAR":
		return "CAST(" + text + " AS CHAR(2000))"
	case "DATE":
		return "TO_DATE(" + text + ", '" + keyDateFormat + "')"
	case "TIMESTAMP":
		return "TO_TIMESTAMP(" + text + ", '" + keyWallFormat + "')"
	case "RAW":
		return "HEXTORAW(" + text + ")"
	}
	return ""
}

var (
	numberText = regexp.MustCompile(`^-?([0-9]+(\.[0-9]+)?|\.[0-9]+)$`)
	timeText   = regexp.MustCompile(`^-?[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?$`)
)

// keyBind writes a part of a key, see [keyText], as the text that is bound. It
// reports false for what cannot have come from the column.
func keyBind(c source.Column, part string) (text string, ok bool) {
	switch c.Type {
	case "NUMBER", "FLOAT":
		return part, numberText.MatchString(part)
	case "RAW":
		_, err := hex.DecodeString(part)
		return part, err == nil
	case "DATE", "TIMESTAMP":
		text = strings.Replace(part, "T", " ", 1)
		if !strings.HasPrefix(text, "-") {
			text = " " + text
		}
		if c.Type == "TIMESTAMP" {
			whole, fraction, _ := strings.Cut(text, ".")
			text = whole + "." + fraction + strings.Repeat("0", max(0, 9-len(fraction)))
		}
		return text, timeText.MatchString(part)
	}
	return part, part != ""
}

// writeByKey writes the read of all rows by key, or from one on. Without the hint
// the optimizer would sort a large table, for each read anew.
func (p *plan) writeByKey(from string, q observer.Query, in observer.Range) error {
	s := p.selection
	key := observer.SplitKey(in.Key, len(s.Key))
	if in.Key != "" && len(key) != len(s.Key) {
		return fmt.Errorf("the key to go on from has %d parts, not %d: has the key been changed?", len(key), len(s.Key))
	}
	notNull := s.Timestamp >= 0 && source.NullsOf(q, s, observer.Range{}) == source.NullsNowhere
	w := p.statements(from, q)
	w.KeyBound = func(n int, c source.Column) string { return keyBound(c, fmt.Sprintf(":%d", n)) }
	text, parts := w.ByKey(s, p.order.parts, in.Key != "", notNull)
	binds := make([]any, len(parts))
	literals := make([]string, len(parts))
	for n, part := range parts {
		c := s.Columns[s.Key[part]]
		bind, ok := keyBind(c, key[part])
		if !ok {
			return fmt.Errorf("the key to go on from does not fit column %s: has its type changed?", c.Name)
		}
		binds[n], literals[n] = bind, "'"+strings.ReplaceAll(bind, "'", "''")+"'"
	}
	w.KeyBound = func(n int, c source.Column) string { return keyBound(c, literals[n-1]) }
	explained, _ := w.ByKey(s, p.order.parts, in.Key != "", notNull)
	p.steps = []step{{sql: p.hinted(tagged(text, q.Stream)), binds: binds, explained: p.hinted(explained)}}
	return nil
}

// hinted puts the hint in front of all other comments, where Oracle looks for it.
func (p *plan) hinted(statement string) string {
	return `SELECT /*+ INDEX_ASC(q "` + p.order.name + `") */` + strings.TrimPrefix(statement, "SELECT")
}
