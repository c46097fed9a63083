package oratest

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// encodeValue is a value as it travels; no bytes are NULL.
func encodeValue(kind wire.Type, value wire.Value, dbZone int) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case string:
		switch kind {
		case wire.TypeVarchar, wire.TypeChar, wire.TypeCLOB, wire.TypeJSON:
			return []byte(v), nil
		case wire.TypeNumber:
			return encodeNumber(v)
		}
	case []byte:
		if kind == wire.TypeRaw {
			return v, nil
		}
	case float64:
		switch kind {
		case wire.TypeBinaryDouble:
			return sortable(binary.BigEndian.AppendUint64(nil, math.Float64bits(v))), nil
		case wire.TypeBinaryFloat:
			return sortable(binary.BigEndian.AppendUint32(nil, math.Float32bits(float32(v)))), nil
		}
	case time.Time:
		return encodeTime(kind, v, dbZone)
	}
	return nil, fmt.Errorf("a %T in a column of type %d", value, kind)
}

// sortable turns the bits of a float into those that sort as it does.
func sortable(b []byte) []byte {
	if b[0]&0x80 == 0 {
		b[0] |= 0x80
		return b
	}
	for i := range b {
		b[i] = ^b[i]
	}
	return b
}

func encodeTime(kind wire.Type, t time.Time, dbZone int) ([]byte, error) {
	switch kind {
	case wire.TypeDate:
		return wallClock(t), nil
	case wire.TypeTimestamp:
		return fraction(wallClock(t), t, false), nil
	case wire.TypeTimestampLTZ:
		return fraction(wallClock(t.In(time.FixedZone("", dbZone))), t, false), nil
	case wire.TypeTimestampTZ:
		_, offset := t.Zone()
		b := fraction(wallClock(t.UTC()), t, true)
		return append(b, byte(offset/3600+20), byte(offset%3600/60+60)), nil
	}
	return nil, fmt.Errorf("a time in a column of type %d", kind)
}

func wallClock(t time.Time) []byte {
	return []byte{
		byte(t.Year()/100 + 100), byte(t.Year()%100 + 100), byte(t.Month()), byte(t.Day()),
		byte(t.Hour() + 1), byte(t.Minute() + 1), byte(t.Second() + 1),
	}
}

// fraction adds the nanoseconds, which a database leaves out when there are
// none and nothing follows them.
func fraction(b []byte, t time.Time, always bool) []byte {
	if t.Nanosecond() == 0 && !always {
		return b
	}
	return binary.BigEndian.AppendUint32(b, uint32(t.Nanosecond()))
}

// decodeTime is the time of a bind; only one with a zone has an offset.
func decodeTime(b []byte) (time.Time, error) {
	if len(b) < 7 {
		return time.Time{}, fmt.Errorf("a time of %d bytes", len(b))
	}
	nanoseconds := 0
	if len(b) >= 11 {
		nanoseconds = int(binary.BigEndian.Uint32(b[7:]))
	}
	year := (int(b[0])-100)*100 + int(b[1]) - 100
	t := time.Date(year, time.Month(b[2]), int(b[3]), int(b[4])-1, int(b[5])-1, int(b[6])-1, nanoseconds, time.UTC)
	if len(b) >= maxDateTimeBytes && b[11]&0x80 == 0 {
		offset := (int(b[11]&0x3F)-20)*3600 + (int(b[12])-60)*60
		t = t.In(time.FixedZone("", offset))
	}
	return t, nil
}

const rowIDDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// rowID puts a row's address: 6 digits of the object, 3 of the file, 6 of the
// block and 3 of the row in it.
func (e *encoder) rowID(value wire.Value) error {
	if value == nil {
		e.put(0)
		return nil
	}
	text, ok := value.(string)
	if !ok || len(text) != 18 {
		return fmt.Errorf("%v is not a ROWID", value)
	}
	var parts []int64
	for _, part := range []string{text[:6], text[6:9], text[9:15], text[15:]} {
		var n int64
		for _, digit := range part {
			at := strings.IndexRune(rowIDDigits, digit)
			if at < 0 {
				return fmt.Errorf("%v is not a ROWID", value)
			}
			n = n<<6 | int64(at)
		}
		parts = append(parts, n)
	}
	e.put(14)
	e.int(parts[0])
	e.int(parts[1])
	e.put(0)
	e.int(parts[2])
	e.int(parts[3])
	return nil
}
