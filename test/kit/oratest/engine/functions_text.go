package engine

import (
	"strings"
	"unicode/utf8"
)

var textFunctions = map[string]function{
	"LENGTH":             {1, 1, length},
	"DBMS_LOB.GETLENGTH": {1, 1, length},
	"RPAD": {3, 3, simple(varchar(4000), []kind{kindText, kindNumber, kindText}, func(_ *session, v []value) value {
		width, _ := v[1].int64()
		s := []rune(v[0].s)
		width = min(max(width, int64(len(s))), 4000)
		return text(string(append(s, []rune(strings.Repeat(v[2].s, int(width)))...)[:width]))
	})},
	"CHR": {1, 1, simple(varchar(4), []kind{kindNumber}, func(_ *session, v []value) value {
		n, _ := v[0].int64()
		return value{kind: kindText, s: string(rune(n))}
	})},
	"RAWTOHEX": {1, 1, simple(varchar(4000), []kind{kindRaw}, func(s *session, v []value) value { return s.convert(v[0], kindText) })},
	"HEXTORAW": {1, 1, simple(dataType{name: typeRaw, size: 2000}, []kind{kindText}, func(_ *session, v []value) value { return toRaw(v[0]) })},
	"TO_CLOB":  {1, 1, simple(plain(typeCLOB), []kind{kindText}, func(_ *session, v []value) value { return v[0] })},
}

// length is that of text in characters.
func length(c *compiler, args []*node) *node {
	return derived(plain(typeNumber), c.to(args[0], kindText), func(v value) value {
		return integer(int64(utf8.RuneCountInString(v.s)))
	})
}
