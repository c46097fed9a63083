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
func (s *session) convert(v value, to kind) value {
	if v.isNull() || v.kind == to || to == kindNull {
		return v
	}
	switch to {
	case kindText:
		return text(s.toText(v))
	case kindNumber:
		return toNumber(v)
	case kindDouble:
		if f, err := strconv.ParseFloat(strings.TrimSpace(v.s), 64); err == nil && v.kind == kindText {
			return double(f)
		}
		return double(toFloat(toNumber(v)))
	case kindRaw:
		return toRaw(v)
	case kindInterval:
		panic(refuse(932, "INTERVAL", "OTHER"))
	}
	if v.kind == kindText {
		return s.readText(v.s, s.format(to), to)
	}
	return s.toTime(v, to)
}

func toNumber(v value) value {
	var n value
	var ok bool
	switch v.kind {
	case kindText:
		n, ok = parseNumber(v.s)
	case kindNumber:
		return v
	case kindDouble:
		n, ok = fromFloat(v.float())
		if !ok {
			panic(refuse(1426))
		}
	default:
		panic(refuse(932, "NUMBER", "OTHER"))
	}
	if !ok {
		panic(refuse(1722))
	}
	return n
}

func toRaw(v value) value {
	if v.kind != kindText {
		panic(refuse(932, "BINARY", "OTHER"))
	}
	digits := v.s
	if len(digits)%2 == 1 {
		digits = "0" + digits
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		panic(refuse(1465))
	}
	return raw(string(b))
}

func (s *session) toText(v value) string {
	switch v.kind {
	case kindNumber:
		return numberText(v)
	case kindRaw:
		return strings.ToUpper(hex.EncodeToString([]byte(v.s)))
	case kindDouble:
		return doubleText(v.float())
	case kindInterval:
		return intervalText(v, 9)
	case kindText, kindNull:
		return v.s
	}
	return writeTime(v, s.format(v.kind), s)
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
func (s *session) readText(from string, format []element, to kind) value {
	t, zone := readTime(from, format, s.engine.now().In(s.zone))
	switch to {
	case kindDate, kindTimestamp:
		return wall(to, t)
	}
	if zone == "" {
		return s.toTime(wall(kindTimestamp, t), to)
	}
	return s.toTime(inZone(t, zone), to)
}

// inZone makes a TIMESTAMP WITH TIME ZONE from a wall clock.
func inZone(t time.Time, zone string) value {
	loc, ok := location(zone)
	if !ok {
		panic(refuse(1882))
	}
	at, ok := civil(wall(kindTimestamp, t), loc)
	if !ok {
		panic(refuse(1878))
	}
	return instant(kindTimestampTZ, at, strings.TrimSpace(zone))
}

// toTime converts between the kinds of times: a time without a zone is one of
// the session's.
func (s *session) toTime(v value, to kind) value {
	switch v.kind {
	case kindDate, kindTimestamp, kindTimestampTZ, kindTimestampLTZ:
	default:
		panic(refuse(932, "DATE", "OTHER"))
	}
	if v.kind == to {
		return v
	}
	switch to {
	case kindDate, kindTimestamp:
		switch v.kind {
		case kindTimestampTZ:
			return wall(to, v.zoned())
		case kindTimestampLTZ:
			return wall(to, v.time().In(s.zone))
		}
		return wall(to, v.time())
	}
	zone := ""
	if to == kindTimestampTZ {
		zone = s.zoneName
	}
	if v.kind == kindTimestampTZ || v.kind == kindTimestampLTZ {
		return instant(to, v.time(), zone)
	}
	at, ok := civil(v, s.zone)
	if !ok {
		panic(refuse(1878))
	}
	return instant(to, at, zone)
}
