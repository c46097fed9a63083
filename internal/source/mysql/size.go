package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/source"
)

// Size implements [source.Dialect]. LENGTH costs the same
// for any value; what it says of some character sets is more than UTF-8 needs.
func (d dialect) Size(c source.Column, qualified string, most int) (fits, length string) {
	if d.relation.isShort(c) {
		return "", ""
	}
	length = "LENGTH(" + qualified + ")"
	fits = fmt.Sprintf("%s <= %d", length, most)
	charset, _, _ := strings.Cut(d.relation.collations[c.Name], "_")
	switch k := kindOf(c.Type); {
	case k == kindJSON:
		length += fmt.Sprintf(" DIV %d", source.WhiteSpace)
	case k == kindText && !slices.Contains(charsets, charset):
		length = "CHAR_LENGTH(" + qualified + ")"
	}
	return fits, length
}

// isShort reports whether the type of a column keeps its values short. What a table
// holds of such columns is at most 64 KiB for all of a row; those of a view or a query
// may be expressions, whose types bind nobody.
func (r relation) isShort(c source.Column) bool {
	switch kindOf(c.Type) {
	case kindJSON:
		return false
	case kindText, kindBytes:
	default:
		return true
	}
	switch c.Type {
	case "enum", "set", "time", "uuid", "inet4", "inet6":
		return true
	case "char", "varchar", "tinytext", "binary", "varbinary", "tinyblob":
		return r.base
	}
	return false
}
