package postgres

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/source"
)

// Timestamps travel as numbers, everything else as text: writing one costs the
// server a fifth of all that it does for an ordinary row. The text that is made of
// them here is the server's own, to the byte, so no other code has to know.

// They count microseconds from 2000-01-01T00:00:00Z, which is this in seconds of
// Unix.
const epoch = 946684800

const microsPerSecond = 1_000_000

// The years 1 to 9999 alone are written in a fixed width. They begin and end here.
const (
	year1     = -63082281600 * microsPerSecond
	year10000 = 252455616000 * microsPerSecond
)

// formats says how the server shall send each column; nil is text for all of them.
// A server before PostgreSQL 10 may have been built to count in fractions.
func (p plan) formats(conn *pgconn.PgConn) (formats []int16) {
	if conn.ParameterStatus("integer_datetimes") != "on" {
		return nil
	}
	for _, k := range p.kinds {
		format := int16(pgx.TextFormatCode)
		if k == kindTimestamptz || k == kindTimestamp {
			format = pgx.BinaryFormatCode
		}
		formats = append(formats, format)
	}
	for range len(p.types) - len(p.kinds) {
		formats = append(formats, pgx.TextFormatCode)
	}
	return formats
}

// moment reads a timestamp that came as a number.
func moment(value []byte) int64 { return int64(binary.BigEndian.Uint64(value)) }

func isOrdinary(moment int64) bool { return year1 <= moment && moment < year10000 }

// clock is what a clock in UTC shows at a moment.
func clock(moment int64) time.Time {
	return time.Unix(epoch+moment/microsPerSecond, moment%microsPerSecond*int64(time.Microsecond)).UTC()
}

// appendMoment appends a timestamp as PostgreSQL writes it in the style ISO, in
// the zone UTC where it has one.
func appendMoment(dst []byte, moment int64, k kind) []byte {
	switch moment {
	case math.MaxInt64:
		return append(dst, "infinity"...)
	case math.MinInt64:
		return append(dst, "-infinity"...)
	}
	if isOrdinary(moment) {
		dst = bytes.TrimRight(appendReading(dst, moment), "0")
		dst = bytes.TrimSuffix(dst, []byte("."))
	} else {
		dst = appendOddReading(dst, moment)
	}
	if k == kindTimestamptz {
		dst = append(dst, "+00"...)
	}
	if moment < year1 {
		dst = append(dst, " BC"...)
	}
	return dst
}

// appendReading appends an ordinary moment in the cursor's layout. Package time
// takes four times as long, which shows in the loop over the rows.
func appendReading(dst []byte, moment int64) []byte {
	t := clock(moment)
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	micros := t.Nanosecond() / int(time.Microsecond)
	text := [len(source.MicroLayout)]byte([]byte(source.MicroLayout))
	putPair(text[0:2], year/100)
	putPair(text[2:4], year%100)
	putPair(text[5:7], int(month))
	putPair(text[8:10], day)
	putPair(text[11:13], hour)
	putPair(text[14:16], minute)
	putPair(text[17:19], second)
	putPair(text[20:22], micros/10000)
	putPair(text[22:24], micros/100%100)
	putPair(text[24:26], micros%100)
	return append(dst, text[:]...)
}

// putPair writes a number below 100.
func putPair(dst []byte, n int) { dst[0], dst[1] = byte('0'+n/10), byte('0'+n%10) }

// appendOddReading appends a moment of another year; that before 1 is 1 BC.
func appendOddReading(dst []byte, moment int64) []byte {
	t := clock(moment)
	year := t.Year()
	if year < 1 {
		year = 1 - year
	}
	return t.AppendFormat(fmt.Appendf(dst, "%04d", year), "-01-02 15:04:05.999999")
}
