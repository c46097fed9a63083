package oratest

import "github.com/observerd/observerd/test/kit/oratest/wire"

// The types on the wire.
const (
	tnsVarchar       = 1
	tnsNumber        = 2
	tnsLong          = 8
	tnsRowID         = 11
	tnsDate          = 12
	tnsRaw           = 23
	tnsLongRaw       = 24
	tnsLongVarchar   = 94
	tnsLongVarRaw    = 95
	tnsChar          = 96
	tnsBinaryFloat   = 100
	tnsBinaryDouble  = 101
	tnsCLOB          = 112
	tnsJSON          = 119
	tnsTimestamp     = 180
	tnsTimestampTZ   = 181
	tnsTimestampLTZ  = 231
	noScale          = -127
	defaultSize      = 4000
	maxDateTimeBytes = 13
)

// shape is how a type travels. Of a size 0 the column has its own.
type shape struct {
	tns    byte
	size   int
	text   bool
	scaled bool
}

var shapes = map[wire.Type]shape{
	wire.TypeVarchar:      {tns: tnsVarchar, text: true},
	wire.TypeChar:         {tns: tnsChar, text: true},
	wire.TypeNumber:       {tns: tnsNumber, size: 22, scaled: true},
	wire.TypeDate:         {tns: tnsDate, size: 7},
	wire.TypeTimestamp:    {tns: tnsTimestamp, size: 11, scaled: true},
	wire.TypeTimestampTZ:  {tns: tnsTimestampTZ, size: maxDateTimeBytes, scaled: true},
	wire.TypeTimestampLTZ: {tns: tnsTimestampLTZ, size: 11, scaled: true},
	wire.TypeRaw:          {tns: tnsRaw},
	wire.TypeCLOB:         {tns: tnsCLOB, size: defaultSize, text: true},
	wire.TypeBinaryFloat:  {tns: tnsBinaryFloat, size: 4},
	wire.TypeBinaryDouble: {tns: tnsBinaryDouble, size: 8},
	wire.TypeRowID:        {tns: tnsRowID, size: 10},
	wire.TypeJSON:         {tns: tnsJSON, size: defaultSize},
}

// describe says which columns a query has.
func (e *encoder) describe(columns []wire.Column) {
	e.put(msgDescribe, 0)
	width := 0
	for _, col := range columns {
		width += sizeOf(col)
	}
	e.ints(width, len(columns))
	e.put(0x51)
	for i, col := range columns {
		e.column(col, i)
	}
	e.dlc(nil)
	e.ints(0, 0, 0, 0)
	e.dlc(nil)
}

func sizeOf(col wire.Column) int {
	if size := shapes[col.Type].size; size != 0 {
		return size
	}
	if col.Size != 0 {
		return col.Size
	}
	return defaultSize
}

func (e *encoder) column(col wire.Column, position int) {
	kind := shapes[col.Type]
	precision, scale := col.Precision, col.Scale
	if col.Type == wire.TypeNumber && precision == 0 && scale == 0 {
		scale = noScale
	}
	e.put(kind.tns, 0, byte(precision))
	if kind.scaled {
		e.ints(scale)
	} else {
		e.put(0)
	}
	size := sizeOf(col)
	e.ints(size, 0, 0)
	e.dlc(nil)
	e.ints(0)
	charset, form, chars := 0, byte(0), 0
	if kind.text {
		charset, form, chars = charsetUTF8, 1, size
	}
	e.ints(charset)
	e.put(form)
	e.ints(chars, 0)
	nullable := byte(0)
	if col.Nullable {
		nullable = 1
	}
	e.put(nullable, byte(min(len(col.Name), 255)))
	e.dlc([]byte(col.Name))
	e.dlc(nil) // schema
	e.dlc(nil) // name of an object type
	e.ints(position+1, 0)
}

func (e *encoder) rowHeader(columns, rows int) {
	e.put(msgRowHeader, 0)
	e.ints(columns, 0, rows, 0)
	e.dlc(nil)
	e.dlc(nil)
}

// snapshot is what a database says of the time of a result.
func (e *encoder) snapshot() {
	e.put(msgParameters)
	e.ints(6, 0, 0, 0, 0, 0, 0, 0, 0, 0)
}
