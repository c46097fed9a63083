package mysql

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

func (p *plan) orderID(parts []int) string {
	return p.selection.OrderID(parts, func(c source.Column) string { return p.relation.collations[c.Name] })
}

// checkKey refuses a key with a FLOAT. No row is found by the key of its event: the
// server compares a decimal number with the binary value, which is another one.
func checkKey(s source.Selection) error {
	for _, i := range s.Key {
		if c := s.Columns[i]; kindOf(c.Type) == kindFloat {
			return fmt.Errorf("column %[1]s of type %[2]s cannot be part of a key: the server finds no row by the decimal text of such a value; "+
				"use a key of exact columns, such as an integer or DECIMAL, or read a query that selects CAST(%[1]s AS DECIMAL(20,6)) AS %[1]s, "+
				"with as many decimals as tell the rows apart", c.Name, c.Type)
		}
	}
	return nil
}

// keyOrder finds the index that serves the key: the primary key, in whose order
// InnoDB keeps the rows, or else another one. NULL comes before all keys here, so
// that no read that goes on leaves it out.
func keyOrder(r relation, s source.Selection, indexes []index) source.KeyIndex {
	if !r.base || !inOrder(r.engine) || !r.bindable(s) {
		return source.KeyIndex{}
	}
	var found source.KeyIndex
	for _, i := range indexes {
		if !i.ordered || found.Parts != nil && !i.primary() {
			continue
		}
		if parts := s.KeyOrder([][]string{i.columns}); parts != nil {
			found = source.KeyIndex{Name: i.name, Parts: parts}
		}
	}
	return found
}

// inOrder reports whether an engine is known to return rows in the order of its
// indexes.
func inOrder(engine string) bool {
	return slices.Contains([]string{"innodb", "myisam", "aria"}, strings.ToLower(engine))
}

// charsets are those of which no character is lost on its way to us and back.
var charsets = []string{"utf8mb4", "utf8mb3", "utf8", "latin1", "ascii"}

// bindable reports whether the values that columns have in a key compare with them
// as their index does.
func (r relation) bindable(s source.Selection) bool {
	return !slices.ContainsFunc(s.Key, func(i int) bool { return !r.bindableColumn(s.Columns[i]) })
}

// sortedLength is how many characters of a text the server sorts by at least, as
// sessions set it: see max_sort_length in [setup].
const sortedLength = 255

// sortsFully reports whether the server sorts by all of a key, and not by the
// beginnings of its texts, and the key is bindable: then no key comes behind one that
// is greater.
func (r relation) sortsFully(s source.Selection) bool {
	return r.bindable(s) && !slices.ContainsFunc(s.Key, func(i int) bool { return r.lengths[s.Columns[i].Name] > sortedLength })
}

// bindableColumn is bindable for one. ENUM and SET are ordered by number, which
// their text does not tell; FLOAT and DOUBLE are compared in binary; YEAR has a text
// for two years.
func (r relation) bindableColumn(c source.Column) bool {
	switch kindOf(c.Type) {
	case kindInteger, kindNumber, kindBit, kindTimestamp, kindDatetime, kindDate:
		return true
	case kindBytes:
		return c.Type == "binary" || c.Type == "varbinary"
	case kindText:
		charset, _, _ := strings.Cut(r.collations[c.Name], "_")
		return c.Type == "time" || (c.Type == "char" || c.Type == "varchar") && slices.Contains(charsets, charset)
	}
	return false
}

var (
	numberText = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)
	timeText   = regexp.MustCompile(`^(-?[0-9]{2,3}|[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}):[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$`)
	dateText   = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
)

// keyBound writes a part of a key as a literal, which needs no quoting: hexadecimal
// digits for text and bytes. The collation of a text is that of the column. It
// reports false for what cannot have come from the column.
func keyBound(c source.Column, part string) (literal string, ok bool) {
	switch k := kindOf(c.Type); {
	case k == kindInteger, k == kindNumber, k == kindBit:
		return part, numberText.MatchString(part)
	case k == kindBytes:
		_, err := hex.DecodeString(part)
		return "X'" + padded(c, part) + "'", err == nil
	case k == kindDate:
		return "'" + latestDate(part) + "'", dateText.MatchString(part)
	case k == kindText && c.Type != "time":
		return "_utf8mb4 X'" + hex.EncodeToString([]byte(part)) + "'", true
	}
	return "'" + latestDate(part) + "'", timeText.MatchString(part)
}

// padded gives a BINARY back the zero bytes that the normal form of a key lacks.
func padded(c source.Column, digits string) string {
	var length int
	if _, err := fmt.Sscanf(c.KeyWidth, "length %d", &length); c.KeyRule != observer.KeyZeroBytes || err != nil {
		return digits
	}
	return digits + strings.Repeat("0", max(0, 2*length-len(digits)))
}

// latestDate replaces a day that no calendar has, which some servers keep and
// others refuse to compare with, by the end of the last one before it.
func latestDate(text string) string {
	if !source.IsWallText([]byte(text)) || len(text) < len(time.DateOnly) {
		return text
	}
	year, month, day := source.Number([]byte(text[0:4])), source.Number([]byte(text[5:7])), source.Number([]byte(text[8:10]))
	if month < 1 || month > 12 || day <= daysIn(year, month) {
		return text
	}
	last := fmt.Sprintf("%04d-%02d-%02d", year, month, daysIn(year, month))
	if len(text) > len(time.DateOnly) {
		last += " 23:59:59"
	}
	return last
}

var declaredWidth = regexp.MustCompile(`\(([0-9]+)(?:,([0-9]+))?\)`)

// keyRule returns the rule of a type, and what its declaration, such as "decimal(10,2)",
// says about the text of its values. CHAR arrives without blanks at the end, and an
// integer without zeros in front.
func keyRule(name, declared string) (rule observer.KeyRule, width string) {
	var length, scale string
	if m := declaredWidth.FindStringSubmatch(declared); m != nil {
		length, scale = m[1], m[2]
	}
	filled := ""
	if strings.Contains(declared, "zerofill") {
		filled = ", filled up to " + length + " digits"
	}
	switch k := kindOf(name); {
	case k == kindNumber, k == kindFloat, k == kindDouble:
		return observer.KeyZeros, "scale " + cmp.Or(scale, "0") + filled
	case k == kindTimestamp, k == kindDatetime, name == "time":
		return observer.KeyFraction, "precision " + cmp.Or(scale, length, "0")
	case name == "binary":
		return observer.KeyZeroBytes, "length " + length
	}
	return "", ""
}
