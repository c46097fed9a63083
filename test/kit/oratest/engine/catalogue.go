package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// defineCatalogue makes the views ALL_… of tables and what they consist of, with the
// columns that the product reads.
func (e *Engine) defineCatalogue() {
	e.catalogued("OBJECTS", "OWNER OBJECT_NAME OBJECT_TYPE", func(o *object) [][]value {
		return [][]value{row(o.owner, o.name, o.kind())}
	})
	e.catalogued("SYNONYMS", "OWNER SYNONYM_NAME TABLE_OWNER TABLE_NAME DB_LINK", func(o *object) [][]value {
		if o.synonym == nil {
			return nil
		}
		return [][]value{row(o.owner, o.name, o.synonym.owner, o.synonym.name, o.link)}
	})
	e.catalogued("TAB_COLUMNS", "OWNER TABLE_NAME COLUMN_NAME DATA_TYPE NULLABLE COLUMN_ID:n DATA_DEFAULT:l", columnRows)
	e.ofTables("TABLES", "OWNER TABLE_NAME NUM_ROWS:n", func(o *object) [][]value {
		count := null
		if n := o.table.def().analyzed; n >= 0 {
			count = integer(n)
		}
		return [][]value{row(o.owner, o.name, count)}
	})
	e.ofTables("MVIEWS", "OWNER MVIEW_NAME", func(o *object) [][]value {
		if !o.table.materialized {
			return nil
		}
		return [][]value{row(o.owner, o.name)}
	})
	e.ofTables("INDEXES", "OWNER INDEX_NAME INDEX_TYPE TABLE_OWNER TABLE_NAME UNIQUENESS STATUS VISIBILITY", indexRows)
	e.ofTables("IND_COLUMNS", "INDEX_OWNER INDEX_NAME TABLE_OWNER TABLE_NAME COLUMN_NAME COLUMN_POSITION:n", indexColumnRows)
	e.ofTables("IND_EXPRESSIONS", "INDEX_OWNER INDEX_NAME TABLE_OWNER TABLE_NAME COLUMN_EXPRESSION:l COLUMN_POSITION:n", func(o *object) [][]value {
		var all [][]value
		for _, f := range o.table.functional() {
			all = append(all, row(f.index.owner, f.index.name, o.owner, o.name, f.expression(), f.position+1))
		}
		return all
	})
	e.ofTables("CONSTRAINTS", "OWNER CONSTRAINT_NAME CONSTRAINT_TYPE TABLE_NAME STATUS", func(o *object) [][]value {
		var all [][]value
		for _, x := range o.table.def().indexes {
			if x.primary {
				all = append(all, row(o.owner, x.name, "P", o.name, "ENABLED"))
			}
		}
		return all
	})
	e.ofTables("CONS_COLUMNS", "OWNER CONSTRAINT_NAME TABLE_NAME COLUMN_NAME POSITION:n", func(o *object) [][]value {
		var all [][]value
		for _, x := range o.table.def().indexes {
			for i, position := range x.columns {
				if x.primary {
					all = append(all, row(o.owner, x.name, o.name, o.table.def().columns[position].name, i+1))
				}
			}
		}
		return all
	})
	e.public("NLS_DATABASE_PARAMETERS", "PARAMETER VALUE", func(*run) [][]value {
		return [][]value{row("NLS_CHARACTERSET", cmp.Or(e.options.Charset, "AL32UTF8")), row("NLS_NCHAR_CHARACTERSET", "AL16UTF16")}
	})
}

// catalogued defines ALL_name of the objects that a user may know of, by their names.
func (e *Engine) catalogued(name, columns string, rows func(*object) [][]value) {
	e.public("ALL_"+name, columns, func(r *run) [][]value {
		e.mu.RLock()
		defer e.mu.RUnlock()
		names := slices.SortedFunc(maps.Keys(e.objects), func(a, b objectName) int {
			return cmp.Or(strings.Compare(a.owner, b.owner), strings.Compare(a.name, b.name))
		})
		var all [][]value
		for _, n := range names {
			o := e.objects[n]
			if o.synonym != nil && (o.owner == "PUBLIC" || o.owner == r.session.user) ||
				e.hasOn(r.session.user, o, "SELECT", "READ", "INSERT", "UPDATE", "DELETE", "EXECUTE") {
				all = append(all, rows(o)...)
			}
		}
		return all
	})
}

// ofTables is catalogued for the objects that are tables.
func (e *Engine) ofTables(name, columns string, rows func(*object) [][]value) {
	e.catalogued(name, columns, func(o *object) [][]value {
		if o.table == nil {
			return nil
		}
		return rows(o)
	})
}

// columnRows are the columns of a table, a view or a view of the system's own.
func columnRows(o *object) [][]value {
	var all [][]value
	add := func(name string, typ dataType, nullable bool, preset string) {
		all = append(all, row(o.owner, o.name, name, typ.String(), nullable, len(all)+1, preset))
	}
	switch {
	case o.table != nil:
		for _, c := range o.table.def().columns {
			if !c.dropped {
				add(c.name, c.typ, c.nullable, c.preset)
			}
		}
	case o.view != nil:
		for _, c := range o.view.result {
			add(c.name, c.typ, c.nullable, "")
		}
	case o.virtual != nil:
		for _, c := range o.virtual.columns {
			add(c.name, c.typ, true, "")
		}
	}
	return all
}

// functional is a column of an index that the database keeps as an expression:
// a TIMESTAMP WITH TIME ZONE in UTC, or a descending column.
type functional struct {
	column   column
	index    *index
	position int // in the index
}

func (t *table) functional() []functional {
	var all []functional
	for _, x := range t.def().indexes {
		for i, position := range x.columns {
			if c := t.def().columns[position]; x.descending[i] || c.typ.name == typeTimestampTZ {
				all = append(all, functional{c, x, i})
			}
		}
	}
	return all
}

func (f functional) expression() string {
	if f.column.typ.name == typeTimestampTZ {
		return `SYS_EXTRACT_UTC("` + f.column.name + `")`
	}
	return strconv.Quote(f.column.name)
}

func indexRows(o *object) [][]value {
	var all [][]value
	for _, x := range o.table.def().indexes {
		kind, unique := x.storage.kind(), "NONUNIQUE"
		if x.unique {
			unique = "UNIQUE"
		}
		if slices.ContainsFunc(o.table.functional(), func(f functional) bool { return f.index == x }) {
			kind = "FUNCTION-BASED NORMAL"
		}
		status, visibility := "VALID", "VISIBLE"
		switch {
		case x.storage.unusable:
			status = "UNUSABLE"
		case x.storage.local: // its partitions have the status
			status = "N/A"
		case x.storage.invisible:
			visibility = "INVISIBLE"
		}
		all = append(all, row(x.owner, x.name, kind, o.owner, o.name, unique, status, visibility))
	}
	return all
}

func indexColumnRows(o *object) [][]value {
	var all [][]value
	for _, x := range o.table.def().indexes {
		for i, position := range x.columns {
			name := o.table.def().columns[position].name
			for n, f := range o.table.functional() {
				if f.index == x && f.position == i { // The name of the column that holds the expression.
					name = fmt.Sprintf("SYS_NC%05d$", len(o.table.def().columns)+n+1)
				}
			}
			all = append(all, row(x.owner, x.name, o.owner, o.name, name, i+1))
		}
	}
	return all
}
