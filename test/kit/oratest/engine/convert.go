package engine

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// convert turns a value into one of another kind, as Oracle does by itself.
func (s *session) convert(v value, to kind) (value, error) {
	if v.isNull() || v.kind == to || to == kindNull {
		return v, nil
	}
	switch to {
	case kindText:
		t, err := s.toText(v)
		return text(t), err
	case kindNumber:
		return toNumber(v)
	case kindDouble:
		n, err := toNumber(v)
		if err != nil && v.kind == kindText {
			f, ferr := strconv.ParseFloat(strings.TrimSpace(v.s), 64)
			if ferr == nil {
				return double(f), nil
			}
		}
		return double(toFloat(n)), err
	case kindRaw:
		return toRaw(v)
	case kindInterval:
		return null, refuse(932, "INTERVAL", "OTHER")
	}
	if v.kind == kindText {
		format, err := s.format(to)
		if err != nil {
			return null, err
		}
		return s.readText(v.s, format, to)
	}
	return s.toTime(v, to)
}

func toNumber(v value) (value, error) {
	var n value
	var ok bool
	switch v.kind {
	case kindText:
		n, ok = parseNumber(v.s)
	case kindNumber:
		return v, nil
	case kindDouble:
		n, ok = fromFloat(v.float())
		if !ok {
			return null, refuse(1426)
		}
	default:
		return null, refuse(932, "NUMBER", "OTHER")
	}
	if !ok {
		return null, refuse(1722)
	}
	return n, nil
}

func toRaw(v value) (value, error) {
	if v.kind != kindText {
		return null, refuse(932, "BINARY", "OTHER")
	}
	digits := v.s
	if len(digits)%2 == 1 {
		digits = "0" + digits
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return null, refuse(1465)
	}
	return raw(string(b)), nil
}

func (s *session) toText(v value) (string, error) {
	switch v.kind {
	case kindNumber:
		return numberText(v), nil
	case kindRaw:
		return strings.ToUpper(hex.EncodeToString([]byte(v.s))), nil
	case kindDouble:
		return doubleText(v.float()), nil
	case kindInterval:
		return intervalText(v, 9), nil
	case kindText, kindNull:
		return v.s, nil
	}
	format, err := s.format(v.kind)
	if err != nil {
		return "", err
	}
	return writeTime(v, format, s)
}

func doubleText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "Nan"
	case math.IsInf(f, 1):
		return "Inf"
	case math.IsInf(f, -1):
		return "-Inf"
	}
	return strings.ToUpper(strconv.FormatFloat(f, 'E', -1, 64))
}

// intervalText has so many digits of the fraction.
func intervalText(v value, digits int) string {
	d := time.Duration(v.n)*time.Second + time.Duration(v.nano)
	sign := "+"
	if d < 0 {
		sign, d = "-", -d
	}
	seconds := int64(d / time.Second)
	s := fmt.Sprintf("%s%02d %02d:%02d:%02d.%09d", sign, seconds/86400, seconds/3600%24, seconds/60%60, seconds%60, d%time.Second)
	return s[:len(s)-9+digits]
}

// readText reads a time of a kind in a format.
func (s *session) readText(from string, format []element, to kind) (value, error) {
	t, zone, err := readTime(from, format, s.engine.now().In(s.zone))
	if err != nil {
		return null, err
	}
	switch to {
	case kindDate, kindTimestamp:
		return wall(to, t), nil
	}
	if zone == "" {
		return s.toTime(wall(kindTimestamp, t), to)
	}
	v, err := inZone(t, zone)
	if err != nil {
		return null, err
	}
	return s.toTime(v, to)
}

// inZone makes a TIMESTAMP WITH TIME ZONE from a wall clock.
func inZone(t time.Time, zone string) (value, error) {
	loc, ok := location(zone)
	if !ok {
		return null, refuse(1882)
	}
	at, ok := civil(wall(kindTimestamp, t), loc)
	if !ok {
		return null, refuse(1878)
	}
	return instant(kindTimestampTZ, at, strings.TrimSpace(zone)), nil
}

// toTime converts between the kinds of times: a time without a zone is one of
// the session's.
func (s *session) toTime(v value, to kind) (value, error) {
	switch v.kind {
	case kindDate, kindTimestamp, kindTimestampTZ, kindTimestampLTZ:
	default:
		return null, refuse(932, "DATE", "OTHER")
	}
	if v.kind == to {
		return v, nil
	}
	switch to {
	case kindDate, kindTimestamp:
		switch v.kind {
		case kindTimestampTZ:
			return wall(to, v.zoned()), nil
		case kindTimestampLTZ:
			return wall(to, v.time().In(s.zone)), nil
		}
		return wall(to, v.time()), nil
	}
	zone := ""
	if to == kindTimestampTZ {
		zone = s.zoneName
	}
	if v.kind == kindTimestampTZ || v.kind == kindTimestampLTZ {
		return instant(to, v.time(), zone), nil
	}
	at, ok := civil(v, s.zone)
	if !ok {
		return null, refuse(1878)
	}
	return instant(to, at, zone), nil
}
