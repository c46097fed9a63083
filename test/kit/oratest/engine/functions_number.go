package engine

import (
	"math/big"
	"strings"
)

var numberFunctions = map[string]function{
	"TO_NUMBER": {1, 3, func(c *compiler, args []*node) *node {
		if len(args) == 1 && args[0].typ.kind() == kindNumber {
			return args[0]
		}
		s := c.session
		n := derived(plain(typeNumber), args[0], func(v value) value {
			if len(args) > 1 && v.kind == kindText {
				// Group separators and currencies are all that a format adds.
				v.s = strings.NewReplacer(",", "", "$", "").Replace(v.s)
			}
			return s.convert(v, kindNumber)
		})
		return n.inherit(args[1:]...)
	}},
	"TO_BINARY_DOUBLE": {1, 1, simple(plain(typeDouble), []kind{kindDouble}, func(_ *session, v []value) value { return v[0] })},
	"FLOOR":            {1, 1, ofNumber(floor)},
	"MOD": {2, 2, simple(plain(typeNumber), []kind{kindNumber}, func(_ *session, v []value) value {
		return modulo(v[0], v[1])
	})},
}

func ofNumber(f func(value) value) func(*compiler, []*node) *node {
	return simple(plain(typeNumber), []kind{kindNumber}, func(_ *session, v []value) value { return f(v[0]) })
}

func floor(v value) value {
	whole := round(v, 0, true)
	if compareNumbers(v, whole) < 0 {
		return add(whole, integer(-1))
	}
	return whole
}

func modulo(a, b value) value {
	if b.isZero() {
		return a
	}
	x, y, scale := align(a, b)
	return number(new(big.Int).Rem(x, y), scale)
}

// writeNumber is TO_CHAR of a number in the format TM9.
func writeNumber(v value, format string) string {
	if !strings.HasPrefix(strings.ToUpper(format), "TM") || v.kind != kindNumber {
		panic(refuse(1481))
	}
	return tight(v)
}

// tight is TM9: all digits, no exponent up to 64 of them.
func tight(v value) string {
	s := v.decimal()
	if len(s) > 64 {
		return scientific(v)
	}
	return bare(s)
}
