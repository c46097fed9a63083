package oratest

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// encodeValue is a value as it travels; no bytes are NULL.
func encodeValue(kind wire.Type, value wire.Value) ([]byte, error) {
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
		if kind == wire.TypeTimestamp {
			return timestamp(v), nil
		}
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

// timestamp is a wall clock with its nanoseconds, which a database leaves out when there
// are none.
func timestamp(t time.Time) []byte {
	b := []byte{
		byte(t.Year()/100 + 100), byte(t.Year()%100 + 100), byte(t.Month()), byte(t.Day()),
		byte(t.Hour() + 1), byte(t.Minute() + 1), byte(t.Second() + 1),
	}
	if t.Nanosecond() == 0 {
		return b
	}
	return binary.BigEndian.AppendUint32(b, uint32(t.Nanosecond()))
}
