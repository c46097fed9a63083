package engine

import (
	"strconv"
)

// columnRows are the columns of tables, views and the system's own views.
func (e *Engine) columnRows(r *run) [][]value {
	var all [][]value
	e.visible(r, func(o *object) {
		switch {
		case o.table != nil:
			id := 0
			for _, c := range o.table.def().columns {
				if !c.dropped {
					id++
					all = append(all, columnRow(o, c.name, c.typ, c.nullable, id, false))
				}
			}
			for i, c := range o.table.functional() {
				all = append(all, columnRow(o, c.hidden(), c.typ(), true, len(o.table.def().columns)+i+1, true))
			}
		case o.view != nil:
			for i, c := range o.view.result {
				all = append(all, columnRow(o, c.name, c.typ, c.nullable, i+1, false))
			}
		case o.virtual != nil:
			for i, c := range o.virtual.columns {
				all = append(all, columnRow(o, c.name, c.typ, true, i+1, false))
			}
		}
	})
	return all
}

func columnRow(o *object, name string, d dataType, nullable bool, id int, hidden bool) []value {
	precision, scale, length, used, set := null, null, 0, null, null
	switch d.kind() {
	case kindNumber:
		if d.precision > 0 {
			precision = integer(int64(d.precision))
		}
		if d.exact {
			scale = integer(int64(d.scale))
		}
	case kindTimestamp, kindTimestampTZ, kindTimestampLTZ, kindInterval:
		scale = integer(int64(d.scale))
	case kindText:
		if !d.lob() && d.name != typeRowID {
			length, set, used = d.size, text("CHAR_CS"), text("B")
			if d.chars {
				used = text("C")
			}
			if d.national() {
				set = text("NCHAR_CS")
			}
		}
	}
	shown := "NO"
	if hidden {
		shown = "YES"
	}
	position := integer(int64(id))
	if hidden {
		position = null
	}
	return row(o.owner, o.name, name, d.String(), null, d.bytes(), precision, scale, nullable, position,
		null, set, length, length, used, shown, shown, id)
}

// functional is a column of an index that the database keeps as an expression:
// a TIMESTAMP WITH TIME ZONE in UTC, or a descending column.
type functional struct {
	table    *table
	index    *index
	position int // in the index
	number   int
}

func (t *table) functional() []functional {
	var all []functional
	for _, x := range t.def().indexes {
		for i, c := range x.columns {
			if x.descending[i] || t.def().columns[c].typ.name == typeTimestampTZ {
				all = append(all, functional{t, x, i, len(t.def().columns) + len(all) + 1})
			}
		}
	}
	return all
}

func (f functional) column() column { return f.table.def().columns[f.index.columns[f.position]] }

// hidden is the name of the column that holds the expression.
func (f functional) hidden() string { return "SYS_NC" + pad(f.number, 5) + "$" }

func (f functional) typ() dataType {
	if d := f.column().typ; d.name == typeTimestampTZ {
		return dataType{name: typeTimestamp, scale: d.scale}
	}
	return dataType{name: typeRaw, size: 12}
}

func (f functional) expression() string {
	if f.column().typ.name == typeTimestampTZ {
		return `SYS_EXTRACT_UTC("` + f.column().name + `")`
	}
	return strconv.Quote(f.column().name)
}

func (e *Engine) indexRows(r *run) [][]value {
	var all [][]value
	e.visible(r, func(o *object) {
		if o.table == nil {
			return
		}
		for _, x := range o.table.def().indexes {
			kind, unique := x.storage.kind(), "NONUNIQUE"
			if x.unique {
				unique = "UNIQUE"
			}
			for _, f := range o.table.functional() {
				if f.index == x {
					kind = "FUNCTION-BASED NORMAL"
				}
			}
			status, visibility, partitioned := "VALID", "VISIBLE", "NO"
			if x.storage.unusable {
				status = "UNUSABLE"
			}
			if x.storage.invisible {
				visibility = "INVISIBLE"
			}
			if x.storage.local { // its partitions have the status
				status, partitioned = "N/A", "YES"
			}
			count := null
			if o.table.def().analyzed >= 0 {
				count = integer(o.table.def().analyzed)
			}
			all = append(all, row(x.owner, x.name, kind, o.owner, o.name, "TABLE", unique, status, visibility, partitioned, count))
		}
	})
	return all
}

func (e *Engine) indexColumnRows(r *run) [][]value {
	var all [][]value
	e.visible(r, func(o *object) {
		if o.table == nil {
			return
		}
		for _, x := range o.table.def().indexes {
			for i, position := range x.columns {
				c := o.table.def().columns[position]
				name, direction := c.name, "ASC"
				if x.descending[i] {
					direction = "DESC"
				}
				for _, f := range o.table.functional() {
					if f.index == x && f.position == i {
						name = f.hidden()
					}
				}
				all = append(all, row(x.owner, x.name, o.owner, o.name, name, i+1, c.typ.bytes(), c.typ.size, direction))
			}
		}
	})
	return all
}

func (e *Engine) indexExpressionRows(r *run) [][]value {
	var all [][]value
	e.visible(r, func(o *object) {
		if o.table == nil {
			return
		}
		for _, f := range o.table.functional() {
			all = append(all, row(f.index.owner, f.index.name, o.owner, o.name, f.expression(), f.position+1))
		}
	})
	return all
}
