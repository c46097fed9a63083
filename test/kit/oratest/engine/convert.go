package engine

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// convert turns a value into one of another kind. What Oracle would do by the formats of
// the session is refused.
func (s *session) convert(v value, to kind) value {
	if v.isNull() || v.kind == to || to == kindNull {
		return v
	}
	switch {
	case to == kindText:
		return text(toText(v))
	case to == kindNumber && v.kind == kindText:
		n, ok := parseNumber(v.s)
		if !ok {
			panic(refuse(1722))
		}
		return n
	case to == kindDouble && v.kind == kindNumber:
		return double(toFloat(v))
	case to == kindDouble && v.kind == kindText:
		f, err := strconv.ParseFloat(strings.TrimSpace(v.s), 64)
		if err != nil {
			panic(refuse(1722))
		}
		return double(f)
	case ranks[to] > 0 && ranks[v.kind] > 0:
		return s.toTime(v, to)
	}
	panic(refuse(932, string(typeOf(to).name), string(typeOf(v.kind).name)))
}

func toRaw(v value) value {
	b, err := hex.DecodeString(v.s)
	if err != nil {
		panic(refuse(1465))
	}
	return raw(string(b))
}

func toText(v value) string {
	switch v.kind {
	case kindNumber:
		return numberText(v)
	case kindRaw:
		return strings.ToUpper(hex.EncodeToString([]byte(v.s)))
	case kindDouble:
		return doubleText(v.float())
	}
	panic(refuse(932, "VARCHAR2", string(typeOf(v.kind).name)))
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
	if zone != "" {
		return s.toTime(inZone(t, zone), to)
	}
	return s.toTime(wall(kindTimestamp, t), to)
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
	switch {
	case v.kind == to:
		return v
	case to == kindDate || to == kindTimestamp:
		if v.kind == kindTimestampTZ {
			return wall(to, v.zoned())
		}
		if v.kind == kindTimestampLTZ {
			return wall(to, v.time().In(s.zone))
		}
		return wall(to, v.time())
	case v.kind == kindTimestampTZ || v.kind == kindTimestampLTZ:
		return instant(to, v.time(), s.zoneName)
	}
	at, ok := civil(v, s.zone)
	if !ok {
		panic(refuse(1878))
	}
	return instant(to, at, s.zoneName)
}
