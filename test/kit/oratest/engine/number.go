package engine

import (
	"math/big"
	"strconv"
	"strings"
)

// maxDigits is how many significant digits a NUMBER keeps.
const maxDigits = 40

func integer(n int64) value { return normal(value{kind: kindNumber, n: n}) }

// normal strips the zeros at the end of a small coefficient, so that equal
// numbers are equal values.
func normal(v value) value {
	if v.n == 0 {
		return value{kind: kindNumber}
	}
	for v.n%10 == 0 {
		v.n /= 10
		v.scale--
	}
	return v
}

var ten = big.NewInt(10)

func pow10(n int) *big.Int {
	return new(big.Int).Exp(ten, big.NewInt(int64(n)), nil)
}

// coefficient returns the number as c / 10^scale.
func (v value) coefficient() (c *big.Int, scale int) {
	if v.s == "" {
		return big.NewInt(v.n), int(v.scale)
	}
	c, _ = new(big.Int).SetString(v.s, 10)
	return c, int(v.scale)
}

// number makes the value of c / 10^scale, rounded to what a NUMBER holds.
func number(c *big.Int, scale int) value {
	if c.IsInt64() {
		return normal(value{kind: kindNumber, n: c.Int64(), scale: int16(scale)})
	}
	if digits := len(new(big.Int).Abs(c).Text(10)); digits > maxDigits {
		c, scale = quotient(c, pow10(digits-maxDigits)), scale-(digits-maxDigits)
	}
	s := c.Text(10)
	stripped := strings.TrimRight(s, "0")
	scale -= len(s) - len(stripped)
	if n, err := strconv.ParseInt(stripped, 10, 64); err == nil {
		return value{kind: kindNumber, n: n, scale: int16(scale)}
	}
	return value{kind: kindNumber, s: stripped, scale: int16(scale)}
}

// quotient divides and rounds half away from zero.
func quotient(a, b *big.Int) *big.Int {
	q, r := new(big.Int).QuoRem(a, b, new(big.Int))
	if r.Abs(r).Lsh(r, 1).CmpAbs(b) >= 0 {
		if a.Sign()*b.Sign() < 0 {
			return q.Sub(q, big.NewInt(1))
		}
		return q.Add(q, big.NewInt(1))
	}
	return q
}

// align brings two numbers to one scale.
func align(a, b value) (x, y *big.Int, scale int) {
	x, sx := a.coefficient()
	y, sy := b.coefficient()
	switch {
	case sx < sy:
		return x.Mul(x, pow10(sy-sx)), y, sy
	case sy < sx:
		return x, y.Mul(y, pow10(sx-sy)), sx
	}
	return x, y, sx
}

func compareNumbers(a, b value) int {
	if a.scale == b.scale && a.s == "" && b.s == "" {
		return order(a.n, b.n)
	}
	x, y, _ := align(a, b)
	return x.Cmp(y)
}

func add(a, b value) value {
	x, y, scale := align(a, b)
	return number(x.Add(x, y), scale)
}

func negate(a value) value {
	c, scale := a.coefficient()
	return number(c.Neg(c), scale)
}

func multiply(a, b value) value {
	x, sx := a.coefficient()
	y, sy := b.coefficient()
	return number(x.Mul(x, y), sx+sy)
}

// divide rounds to the digits of a NUMBER; b is not zero.
func divide(a, b value) value {
	x, sx := a.coefficient()
	y, sy := b.coefficient()
	shift := max(maxDigits+len(y.Text(10))-len(x.Text(10)), 0)
	return number(quotient(x.Mul(x, pow10(shift)), y), sx-sy+shift)
}

func (v value) isZero() bool { return v.n == 0 && v.s == "" }

// round rounds a number to so many digits after the point, which may be
// negative. down cuts them off instead.
func round(v value, digits int, down bool) value {
	if int(v.scale) <= digits {
		return v
	}
	c, scale := v.coefficient()
	unit := pow10(scale - digits)
	if down {
		return number(c.Quo(c, unit), digits)
	}
	return number(quotient(c, unit), digits)
}

// int64 returns the number without its fraction; false when it does not fit.
func (v value) int64() (int64, bool) {
	whole := round(v, 0, true)
	c, scale := whole.coefficient()
	if scale < 0 {
		c.Mul(c, pow10(-scale))
	}
	return c.Int64(), c.IsInt64()
}

// decimal writes a number in full: digits, at most one point, no exponent.
func (v value) decimal() string {
	digits := v.s
	if digits == "" {
		digits = strconv.FormatInt(v.n, 10)
	}
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	scale := int(v.scale)
	switch {
	case scale < 0:
		return sign + digits + strings.Repeat("0", -scale)
	case scale == 0:
		return sign + digits
	case scale >= len(digits):
		digits = strings.Repeat("0", scale-len(digits)+1) + digits
	}
	return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}

// numberText is what TO_CHAR makes of a number: no zero before the point.
func numberText(v value) string {
	s := v.decimal()
	if len(s) > maxDigits+1 {
		return scientific(v)
	}
	return bare(s)
}

// bare drops the zero before the point.
func bare(s string) string {
	if rest, ok := strings.CutPrefix(s, "-0."); ok {
		return "-." + rest
	}
	if rest, ok := strings.CutPrefix(s, "0."); ok {
		return "." + rest
	}
	return s
}

// scientific writes a number that is too long for the usual form.
func scientific(v value) string {
	c, scale := v.coefficient()
	digits := new(big.Int).Abs(c).Text(10)
	exponent := len(digits) - 1 - scale
	mantissa := digits[:1]
	if len(digits) > 1 {
		mantissa += "." + digits[1:]
	}
	if c.Sign() < 0 {
		mantissa = "-" + mantissa
	}
	sign := "+"
	if exponent < 0 {
		sign, exponent = "-", -exponent
	}
	return mantissa + "E" + sign + strconv.Itoa(exponent)
}

// parseNumber reads what TO_NUMBER reads without a format.
func parseNumber(s string) (value, bool) {
	s = strings.TrimSpace(s)
	mantissa, exponent, hasExponent := strings.Cut(strings.ToUpper(s), "E")
	shift := 0
	if hasExponent {
		var err error
		if shift, err = strconv.Atoi(exponent); err != nil || shift > 130 || shift < -130 {
			return null, false
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if strings.Trim(digits, "0123456789") != strings.Trim(whole, "0123456789") || strings.ContainsAny(fraction, "+-") {
		return null, false
	}
	if bare := strings.TrimLeft(digits, "+-"); bare == "" || len(digits)-len(bare) > 1 {
		return null, false
	}
	c, ok := new(big.Int).SetString(digits, 10)
	if !ok || len(digits) > 200 {
		return null, false
	}
	return number(c, len(fraction)-shift), true
}

func toFloat(v value) float64 {
	f, _ := strconv.ParseFloat(v.decimal(), 64)
	return f
}
