package mysql

import (
	"bytes"
	"math"
	"strconv"
)

// The server prints a FLOAT with six digits, which are too few for most values:
// 1234567 as 1234570. As DOUBLE it prints all digits of the value. Both are selected,
// with a space between them, see [kind.selected]: the former is kept wherever it is
// exact, as it has the decimals and the exponent that the type of the column and the
// server ask for. (MySQL was not run; its bug 115277 shows six digits of 8.0.)

// How long these texts may be, of FLOAT(255,30) and DOUBLE(255,30). Without a length
// the server cuts values that it sorts in a table of its own: -2.5e-308 to -2.5e-3.
const (
	floatLength  = 110
	doubleLength = 260
)

// floatText returns the text of a FLOAT that was selected: the server's, if it gives the
// value back, or else the shortest that does.
func floatText(selected []byte) []byte {
	six, exact, _ := bytes.Cut(selected, []byte(" "))
	printed, _ := strconv.ParseFloat(string(six), 32)
	value, err := strconv.ParseFloat(string(exact), 32)
	if printed == value || err != nil {
		return six
	}
	return shortest(value)
}

// The server writes an exponent from maxPlain on, and below minPlain.
const (
	maxPlain = 1e15
	minPlain = 1e-15
)

// shortest writes a FLOAT with as few digits as give it back, as the server would
// write these.
func shortest(value float64) []byte {
	if abs := math.Abs(value); abs < maxPlain && abs >= minPlain {
		return strconv.AppendFloat(nil, value, 'f', -1, 32)
	}
	return bytes.Replace(strconv.AppendFloat(nil, value, 'e', -1, 32), []byte("e+"), []byte("e"), 1)
}
