package oratest

import (
	"bytes"
	"fmt"
	"strings"
)

// maxPairs is how many pairs of digits a NUMBER holds.
const maxPairs = 20

// encodeNumber is an exact decimal text as a NUMBER: an exponent of 100, then
// pairs of digits, all of them turned round below zero.
func encodeNumber(text string) ([]byte, error) {
	negative, digits, point, err := decimal(text)
	if err != nil {
		return nil, err
	}
	if digits == "" {
		return []byte{0x80}, nil
	}
	// The point has to stand between two pairs.
	if point%2 != 0 {
		digits = "0" + digits
		point++
	}
	if len(digits)%2 != 0 {
		digits += "0"
	}
	exponent := point/2 - 1
	if len(digits)/2 > maxPairs+1 || exponent < -65 || exponent > 62 {
		return nil, fmt.Errorf("%s does not fit a NUMBER", text)
	}
	b := []byte{byte(exponent + 193)}
	if negative {
		b[0] = byte(62 - exponent)
	}
	for i := 0; i < len(digits); i += 2 {
		pair := (digits[i]-'0')*10 + digits[i+1] - '0'
		if negative {
			b = append(b, 101-pair)
		} else {
			b = append(b, pair+1)
		}
	}
	if negative && len(b) < 21 {
		b = append(b, 102)
	}
	return b, nil
}

// decimal takes a text such as -12.50 apart: its digits without zeros at
// either end, and where the point stands in them.
func decimal(text string) (negative bool, digits string, point int, err error) {
	number, negative := strings.CutPrefix(text, "-")
	if !negative {
		number = strings.TrimPrefix(number, "+")
	}
	whole, part, _ := strings.Cut(number, ".")
	digits = whole + part
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return false, "", 0, fmt.Errorf("%q is not a decimal number", text)
	}
	point = len(whole)
	trimmed := strings.TrimLeft(digits, "0")
	point -= len(digits) - len(trimmed)
	return negative, strings.TrimRight(trimmed, "0"), point, nil
}

// decodeNumber is the exact decimal text of a NUMBER.
func decodeNumber(b []byte) string {
	negative := b[0]&0x80 == 0
	exponent := int(b[0]) - 193
	if negative {
		exponent = 62 - int(b[0])
		b = bytes.TrimSuffix(b, []byte{102})
	}
	var digits strings.Builder
	for _, pair := range b[1:] {
		n := int(pair) - 1
		if negative {
			n = 101 - int(pair)
		}
		fmt.Fprintf(&digits, "%02d", n)
	}
	return pointed(negative, digits.String(), (exponent+1)*2)
}

// pointed writes digits with a point after so many of them.
func pointed(negative bool, digits string, point int) string {
	if point > len(digits) {
		digits += strings.Repeat("0", point-len(digits))
	}
	if point < 0 {
		digits, point = strings.Repeat("0", -point)+digits, 0
	}
	text := strings.TrimLeft(digits[:point], "0")
	if text == "" {
		text = "0"
	}
	if part := strings.TrimRight(digits[point:], "0"); part != "" {
		text += "." + part
	}
	if negative && text != "0" {
		text = "-" + text
	}
	return text
}
