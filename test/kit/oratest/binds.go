package oratest

import "github.com/observerd/observerd/test/kit/oratest/wire"

// definition is how a client sends a bind, or wants a column.
type definition struct{ tns byte }

// long says that values of the definition come whole, and behind the others.
func (d definition) long() bool {
	switch d.tns {
	case tnsLong, tnsLongRaw, tnsLongVarchar, tnsLongVarRaw:
		return true
	}
	return false
}

func decodeDefinitions(d *decoder, n int) []definition {
	all := make([]definition, n)
	for i := range all {
		all[i].tns = d.byte()
		d.skip(3)
		d.int()
		if d.int() != 0 {
			d.fail("a bind of an array")
		}
		d.int()
		d.dlc()
		d.int()
		d.int()
		d.byte()
		d.int()
		d.int()
	}
	return all
}

// decodeBinds reads the values of binds; there is no message of them when nothing is bound.
func decodeBinds(d *decoder, binds []definition) []wire.Value {
	if len(binds) == 0 {
		return nil
	}
	if kind := d.byte(); kind != msgRow {
		d.fail("a message of kind %d where binds were to come", kind)
	}
	row := make([]wire.Value, len(binds))
	for _, long := range []bool{false, true} {
		for i, bind := range binds {
			if bind.long() == long {
				row[i] = decodeBind(d, bind)
			}
		}
	}
	return row
}

func decodeBind(d *decoder, bind definition) wire.Value {
	b := d.clr()
	switch bind.tns {
	case tnsVarchar, tnsChar, tnsLong, tnsLongVarchar:
		if b == nil {
			return nil
		}
		return string(b)
	case tnsNumber:
		if b == nil {
			return nil
		}
		return decodeNumber(b)
	}
	d.fail("a bind of type %d", bind.tns)
	return nil
}
