package engine

import (
	"math/big"
	"strings"
)

var numberFunctions = map[string]function{
	"TO_NUMBER":        {1, 1, ofNumber(func(v value) value { return v })},
	"TO_BINARY_DOUBLE": {1, 1, simple(plain(typeDouble), []kind{kindDouble}, func(_ *session, v []value) value { return v[0] })},
	"MOD": {2, 2, simple(plain(typeNumber), []kind{kindNumber}, func(_ *session, v []value) value {
		return modulo(v[0], v[1])
	})},
}

func ofNumber(f func(value) value) func(*compiler, []*node) *node {
	return simple(plain(typeNumber), []kind{kindNumber}, func(_ *session, v []value) value { return f(v[0]) })
}

func modulo(a, b value) value {
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
