package oracle

import (
	"cmp"
	"context"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// hintName is what a hint may hold: a comment ends at nothing in it.
var hintName = regexp.MustCompile(`^[A-Za-z0-9_$#]+$`)

const charsetSQL = "SELECT p.VALUE FROM NLS_DATABASE_PARAMETERS p WHERE p.PARAMETER = 'NLS_CHARACTERSET'"

// keyOrder finds the index that serves the key: the table itself where its rows are
// kept in that order, or else one that is unique. NULL comes behind all keys, where
// a read that goes on would leave it out, so there must be none.
func (c *session) keyOrder(ctx context.Context, q observer.Query, p plan, indexes []index) (source.KeyIndex, error) {
	found := servesKey(p.selection, indexes)
	if found.Parts == nil || p.selection.KeyNullable() {
		return source.KeyIndex{}, nil
	}
	if ok, err := c.bindable(ctx, q, p, found.Parts); !ok {
		return source.KeyIndex{}, err
	}
	return found, nil
}

// tieOrder identifies the order of rows that share a timestamp; empty where no read
// can go on within them.
func (c *session) tieOrder(ctx context.Context, q observer.Query, p plan) (string, error) {
	ties := p.selection.TieOrder()
	if ok, err := c.bindable(ctx, q, p, ties); !ok {
		return "", err
	}
	return p.selection.OrderID(ties, nil), nil
}

// bindable reports whether parts of a key that were read compare with their columns.
// The driver loses characters of other sets than these on their way to us and back.
func (c *session) bindable(ctx context.Context, q observer.Query, p plan, parts []int) (bool, error) {
	text := false
	for _, part := range parts {
		i := p.selection.Key[part]
		if keyBound(p.selection.Columns[i], "") == "" {
			return false, nil
		}
		text = text || p.kinds[i] == kindText || p.kinds[i] == kindPadded
	}
	if !text {
		return true, nil
	}
	r := p.relation
	if r.charset == "" {
		rows, err := c.rows(ctx, "read the character set", charsetSQL)
		if err != nil || len(rows) != 1 {
			return false, err
		}
		r.charset = rows[0][0]
		c.source.relations.put(q, r)
	}
	return r.charset == "AL32UTF8" || r.charset == "UTF8", nil
}

func servesKey(s source.Selection, indexes []index) source.KeyIndex {
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
			return source.KeyIndex{Name: i.bare, Parts: parts}
		}
	}
	return source.KeyIndex{}
}

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
		return "TO_DATE(" + text + ", 'S" + dateFormat + "')"
	case "TIMESTAMP":
		return "TO_TIMESTAMP(" + text + ", 'S" + wallFormat + "')"
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
