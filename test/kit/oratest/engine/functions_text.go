package engine

import (
	"strings"
	"unicode/utf8"
)

var textFunctions = map[string]function{
	"UPPER":              {1, 1, textOf(strings.ToUpper)},
	"LOWER":              {1, 1, textOf(strings.ToLower)},
	"LENGTH":             {1, 1, numberOf(utf8.RuneCountInString)},
	"LENGTHB":            {1, 1, numberOf(func(s string) int { return len(s) })},
	"TRIM":               {1, 2, trimmed(strings.Trim)},
	"LTRIM":              {1, 2, trimmed(strings.TrimLeft)},
	"RTRIM":              {1, 2, trimmed(strings.TrimRight)},
	"LPAD":               {2, 3, padded(true)},
	"RPAD":               {2, 3, padded(false)},
	"SUBSTR":             {2, 3, substring(plain(typeVarchar), 1, 2)},
	"DBMS_LOB.SUBSTR":    {1, 3, lobSubstring},
	"DBMS_LOB.GETLENGTH": {1, 1, numberOf(utf8.RuneCountInString)},
	"INSTR": {2, 2, simple(plain(typeNumber), []kind{kindText}, func(_ *session, v []value) (value, error) {
		i := strings.Index(v[0].s, v[1].s)
		if i >= 0 {
			i = utf8.RuneCountInString(v[0].s[:i])
		}
		return integer(int64(i + 1)), nil
	})},
	"REPLACE": {2, 3, replaced},
	"CHR": {1, 1, simple(varchar(4), []kind{kindNumber}, func(_ *session, v []value) (value, error) {
		n, _ := v[0].int64()
		return value{kind: kindText, s: string(rune(n))}, nil
	})},
	"RAWTOHEX": {1, 1, simple(varchar(4000), []kind{kindRaw}, func(s *session, v []value) (value, error) { return s.convert(v[0], kindText) })},
	"HEXTORAW": {1, 1, simple(dataType{name: typeRaw, size: 2000}, []kind{kindText}, func(_ *session, v []value) (value, error) { return toRaw(v[0]) })},
	"TO_CLOB":  {1, 1, simple(plain(typeCLOB), []kind{kindText}, func(_ *session, v []value) (value, error) { return v[0], nil })},
	"UTL_RAW.CAST_TO_RAW": {1, 1, simple(dataType{name: typeRaw, size: 2000}, []kind{kindText}, func(_ *session, v []value) (value, error) {
		return raw(v[0].s), nil
	})},
}

// replaced is REPLACE, which takes NULL for the empty text.
func replaced(c *compiler, args []*node) *node {
	for i, a := range args {
		args[i] = c.to(a, kindText)
	}
	n := (&node{typ: plain(typeVarchar), nullable: true}).inherit(args...)
	n.eval = func(f *frame) (value, error) {
		var v [3]value
		for i, a := range args {
			var err error
			if v[i], err = a.eval(f); err != nil {
				return null, err
			}
		}
		if v[1].isNull() {
			return v[0], nil
		}
		return text(strings.ReplaceAll(v[0].s, v[1].s, v[2].s)), nil
	}
	return n
}

func textOf(f func(string) string) func(*compiler, []*node) *node {
	return func(c *compiler, args []*node) *node {
		typ := varchar(4000)
		if args[0].typ.isText() && args[0].typ.size > 0 {
			typ = varchar(args[0].typ.bytes())
		}
		return derived(typ, c.to(args[0], kindText), func(v value) (value, error) { return text(f(v.s)), nil })
	}
}

func numberOf(f func(string) int) func(*compiler, []*node) *node {
	return func(c *compiler, args []*node) *node {
		in := args[0]
		if in.typ.kind() != kindRaw {
			in = c.to(in, kindText)
		}
		return derived(plain(typeNumber), in, func(v value) (value, error) {
			if v.kind == kindRaw {
				return integer(int64(len(v.s))), nil
			}
			return integer(int64(f(v.s))), nil
		})
	}
}

func trimmed(f func(s, cutset string) string) func(*compiler, []*node) *node {
	return func(c *compiler, args []*node) *node {
		if len(args) == 1 {
			args = append(args, constant(text(" "), varchar(1)))
		}
		return simple(varchar(4000), []kind{kindText}, func(_ *session, v []value) (value, error) {
			return text(f(v[0].s, v[1].s)), nil
		})(c, args)
	}
}

func padded(left bool) func(*compiler, []*node) *node {
	return func(c *compiler, args []*node) *node {
		if len(args) == 2 {
			args = append(args, constant(text(" "), varchar(1)))
		}
		return simple(varchar(4000), []kind{kindText, kindNumber, kindText}, func(_ *session, v []value) (value, error) {
			width, _ := v[1].int64()
			width = min(width, 4000)
			s := []rune(v[0].s)
			if int(width) <= len(s) {
				return text(string(s[:max(width, 0)])), nil
			}
			fill := []rune(strings.Repeat(v[2].s, int(width)))[:int(width)-len(s)]
			if left {
				return text(string(fill) + string(s)), nil
			}
			return text(string(s) + string(fill)), nil
		})(c, args)
	}
}

// substring takes the positions of its start and its length in the arguments.
func substring(typ dataType, start, length int) func(*compiler, []*node) *node {
	return func(c *compiler, args []*node) *node {
		kinds := []kind{kindText, kindNumber, kindNumber}
		return simple(typ, kinds, func(_ *session, v []value) (value, error) {
			s := []rune(v[0].s)
			from, _ := v[start].int64()
			if from > 0 {
				from--
			} else if from < 0 {
				from += int64(len(s))
			}
			if from < 0 || from >= int64(len(s)) {
				return null, nil
			}
			to := int64(len(s))
			if len(v) > length {
				n, _ := v[length].int64()
				to = min(to, from+max(n, 0))
			}
			return text(string(s[from:to])), nil
		})(c, args)
	}
}

// lobSubstring is DBMS_LOB.SUBSTR(lob, amount, offset).
func lobSubstring(c *compiler, args []*node) *node {
	amount, offset := constant(integer(32767), plain(typeNumber)), constant(integer(1), plain(typeNumber))
	if len(args) > 1 {
		amount = args[1]
	}
	if len(args) > 2 {
		offset = args[2]
	}
	typ := varchar(4000)
	if args[0].typ.kind() == kindRaw {
		return simple(dataType{name: typeRaw, size: 2000}, []kind{kindRaw, kindNumber}, func(_ *session, v []value) (value, error) {
			n, _ := v[1].int64()
			return raw(v[0].s[:min(int(n), len(v[0].s))]), nil
		})(c, []*node{args[0], amount})
	}
	n := substring(typ, 1, 2)(c, []*node{args[0], offset, amount})
	in := n.eval
	n.eval = func(f *frame) (value, error) {
		v, err := in(f)
		if err == nil && len(v.s) > 4000 {
			// A VARCHAR2 in SQL holds no more.
			return null, refuse(6502)
		}
		return v, err
	}
	return n
}
