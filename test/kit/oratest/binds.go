package oratest

import (
	"fmt"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// definition is how a client sends a bind, or wants a column.
type definition struct {
	tns      byte
	repeated bool
}

// flagRepeated marks a bind by name that has been sent already.
const flagRepeated = 0x80

// long says that values of the definition come whole, and behind the others.
func (d definition) long() bool {
	switch d.tns {
	case tnsLong, tnsLongRaw, tnsLongVarchar, tnsLongVarRaw:
		return true
	}
	return false
}

func decodeDefinitions(d *decoder, n int) []definition {
	var all []definition
	d.each(n, func() {
		one := definition{tns: d.byte(), repeated: d.byte() == flagRepeated}
		d.skip(2)
		d.uint()
		if d.uint() != 0 {
			d.fail("a bind of an array")
		}
		d.uint()
		d.dlc()
		d.uint()
		d.uint()
		d.byte()
		d.uint()
		d.uint()
		if one.repeated {
			d.fail("a bind by name that is used twice")
		}
		all = append(all, one)
	})
	return all
}

// decodeRows reads n rows of binds; there is one without values when nothing
// is bound.
func decodeRows(d *decoder, binds []definition, n int) [][]wire.Value {
	if len(binds) == 0 {
		return [][]wire.Value{nil}
	}
	var all [][]wire.Value
	d.each(n, func() {
		if kind := d.byte(); kind != msgRow {
			d.fail("a message of kind %d where binds were to come", kind)
		}
		all = append(all, decodeBinds(d, binds))
	})
	return all
}

func decodeBinds(d *decoder, binds []definition) []wire.Value {
	row := make([]wire.Value, len(binds))
	for _, long := range []bool{false, true} {
		for i, bind := range binds {
			if bind.long() != long {
				continue
			}
			value, err := decodeBind(bind, d.clr())
			if err != nil {
				d.fail("bind %d: %w", i+1, err)
			}
			row[i] = value
		}
	}
	return row
}

func decodeBind(bind definition, b []byte) (wire.Value, error) {
	switch bind.tns {
	case tnsVarchar, tnsChar, tnsLong, tnsLongVarchar, tnsNumber, tnsRaw, tnsLongRaw, tnsLongVarRaw,
		tnsDate, tnsTimestamp, tnsTimestampTZ, tnsTimestampLTZ:
	default:
		return nil, fmt.Errorf("type %d", bind.tns)
	}
	if b == nil {
		return nil, nil
	}
	switch bind.tns {
	case tnsNumber:
		return decodeNumber(b)
	case tnsRaw, tnsLongRaw, tnsLongVarRaw:
		return b, nil
	case tnsDate, tnsTimestamp, tnsTimestampTZ, tnsTimestampLTZ:
		return decodeTime(b)
	}
	return string(b), nil
}

// kinds are the types of binds.
func kinds(binds []definition) []wire.Type {
	all := make([]wire.Type, len(binds))
	for i, bind := range binds {
		switch bind.tns {
		case tnsLong, tnsLongVarchar:
			all[i] = wire.TypeVarchar
		case tnsLongRaw, tnsLongVarRaw:
			all[i] = wire.TypeRaw
		default:
			all[i] = kindOf(bind.tns)
		}
	}
	return all
}

func kindOf(tns byte) wire.Type {
	for kind, shape := range shapes {
		if shape.tns == tns {
			return kind
		}
	}
	return wire.TypeVarchar
}
