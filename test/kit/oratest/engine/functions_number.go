package engine

import (
	"math"
	"math/big"
	"strings"
)

var numberFunctions = map[string]function{
	"TO_NUMBER": {1, 3, func(c *compiler, args []*node) *node {
		if len(args) == 1 && args[0].typ.kind() == kindNumber {
			return args[0]
		}
		s := c.session
		n := derived(plain(typeNumber), args[0], func(v value) (value, error) {
			if len(args) > 1 && v.kind == kindText {
				// Group separators and currencies are all that a format adds.
				v.s = strings.NewReplacer(",", "", "$", "").Replace(v.s)
			}
			return s.convert(v, kindNumber)
		})
		return n.inherit(args[1:]...)
	}},
	"TO_BINARY_DOUBLE": {1, 1, simple(plain(typeDouble), []kind{kindDouble}, func(_ *session, v []value) (value, error) { return v[0], nil })},
	"ABS":              {1, 1, ofNumber(absolute)},
	"SIGN":             {1, 1, ofNumber(func(v value) value { return integer(int64(compareNumbers(v, integer(0)))) })},
	"FLOOR":            {1, 1, ofNumber(floor)},
	"CEIL":             {1, 1, ofNumber(func(v value) value { return negate(floor(negate(v))) })},
	"MOD": {2, 2, simple(plain(typeNumber), []kind{kindNumber}, func(_ *session, v []value) (value, error) {
		return modulo(v[0], v[1]), nil
	})},
	"POWER": {2, 2, simple(plain(typeNumber), []kind{kindNumber}, func(_ *session, v []value) (value, error) {
		n, ok := fromFloat(math.Pow(toFloat(v[0]), toFloat(v[1])))
		if !ok {
			return null, refuse(1426)
		}
		return n, nil
	})},
	"TRUNC": {1, 2, func(c *compiler, args []*node) *node { return rounded(c, args, true) }},
	"ROUND": {1, 2, func(c *compiler, args []*node) *node { return rounded(c, args, false) }},
}

func ofNumber(f func(value) value) func(*compiler, []*node) *node {
	return simple(plain(typeNumber), []kind{kindNumber}, func(_ *session, v []value) (value, error) { return f(v[0]), nil })
}

func absolute(v value) value {
	if compareNumbers(v, integer(0)) < 0 {
		return negate(v)
	}
	return v
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

// rounded is TRUNC and ROUND, of numbers and of times.
func rounded(c *compiler, args []*node, down bool) *node {
	if ranks[args[0].typ.kind()] > 0 {
		if !down {
			c.fail(3001)
		}
		in := c.to(args[0], kindDate)
		if len(args) == 1 {
			return derived(plain(typeDate), in, func(v value) (value, error) { return truncateTime(v, "") })
		}
		return pair(plain(typeDate), in, args[1], func(v, format value) (value, error) { return truncateTime(v, format.s) })
	}
	if len(args) == 1 {
		args = append(args, constant(integer(0), plain(typeNumber)))
	}
	return simple(plain(typeNumber), []kind{kindNumber}, func(_ *session, v []value) (value, error) {
		digits, _ := v[1].int64()
		return round(v[0], int(digits), down), nil
	})(c, args)
}

// writeNumber is TO_CHAR of a number in a format of 9, 0, points and commas, or
// TM9.
func writeNumber(v value, format string) (string, error) {
	if v.kind == kindDouble {
		n, ok := fromFloat(v.float())
		if !ok {
			return doubleText(v.float()), nil
		}
		v = n
	}
	f := strings.ToUpper(format)
	if strings.HasPrefix(f, "TM") {
		return tight(v), nil
	}
	fill := !strings.HasPrefix(f, "FM")
	f = strings.NewReplacer("FM", "", "D", ".", "G", ",", "S", "", "MI", "").Replace(f)
	if strings.Trim(f, "90.,") != "" || strings.Count(f, ".") > 1 {
		return "", refuse(1481)
	}
	whole, fraction, point := strings.Cut(f, ".")
	v = round(v, len(fraction), false)
	sign := ""
	if compareNumbers(v, integer(0)) < 0 {
		sign, v = "-", negate(v)
	}
	digits, decimals, _ := strings.Cut(v.decimal(), ".")
	width := strings.Count(whole, "9") + strings.Count(whole, "0")
	if len(digits) > width && (digits != "0" || width > 0) {
		return strings.Repeat("#", len(f)+1), nil
	}
	s := sign + layout(whole, digits)
	if point {
		decimals += strings.Repeat("0", len(fraction)-len(decimals))
		if !fill {
			decimals = strings.TrimRight(decimals, "0") + strings.Repeat("0", max(0, strings.LastIndexByte(fraction, '0')+1-len(strings.TrimRight(decimals, "0"))))
		}
		s += "." + decimals
	}
	if fill {
		s = strings.Repeat(" ", max(0, len(f)+1-len(s))) + s
	}
	return s, nil
}

// tight is TM9: all digits, no exponent up to 64 of them.
func tight(v value) string {
	s := v.decimal()
	if len(s) > 64 {
		return scientific(v)
	}
	return bare(s)
}

// layout puts digits into the places of a format, from the right.
func layout(format, digits string) string {
	zero := strings.IndexByte(format, '0')
	out := make([]byte, 0, len(format))
	rest := digits
	if rest == "0" && zero < 0 {
		rest = ""
	}
	for i := len(format) - 1; i >= 0; i-- {
		switch {
		case format[i] == ',':
			if rest != "" || zero >= 0 && i > zero {
				out = append(out, ',')
			}
		case rest != "":
			out = append(out, rest[len(rest)-1])
			rest = rest[:len(rest)-1]
		case zero >= 0 && i >= zero:
			out = append(out, '0')
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return string(out)
}
