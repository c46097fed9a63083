package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// defineCatalogue makes the views ALL_… of tables and what they consist of.
func (e *Engine) defineCatalogue() {
	e.catalogued("TABLES", "OWNER TABLE_NAME TABLESPACE_NAME STATUS NUM_ROWS:n BLOCKS:n AVG_ROW_LEN:n LAST_ANALYZED:d PARTITIONED TEMPORARY DEPENDENCIES", e.tableRows)
	e.catalogued("MVIEWS", "OWNER MVIEW_NAME CONTAINER_NAME", e.mviewRows)
	e.catalogued("OBJECTS", "OWNER OBJECT_NAME OBJECT_ID:n OBJECT_TYPE CREATED:d LAST_DDL_TIME:d STATUS TEMPORARY GENERATED", e.objectRows)
	e.catalogued("SYNONYMS", "OWNER SYNONYM_NAME TABLE_OWNER TABLE_NAME DB_LINK", e.synonymRows)
	columns := "OWNER TABLE_NAME COLUMN_NAME DATA_TYPE DATA_TYPE_OWNER DATA_LENGTH:n DATA_PRECISION:n DATA_SCALE:n NULLABLE COLUMN_ID:n " +
		"DATA_DEFAULT:l CHARACTER_SET_NAME CHAR_LENGTH:n CHAR_COL_DECL_LENGTH:n CHAR_USED"
	e.catalogued("TAB_COLUMNS", columns, func(r *run) [][]value {
		var all [][]value
		for _, row := range e.columnRows(r) {
			if row[15].s == "NO" {
				all = append(all, row[:15])
			}
		}
		return all
	})
	// Only this one tells which columns are hidden.
	e.catalogued("TAB_COLS", columns+" HIDDEN_COLUMN VIRTUAL_COLUMN INTERNAL_COLUMN_ID:n", e.columnRows)
	e.catalogued("INDEXES", "OWNER INDEX_NAME INDEX_TYPE TABLE_OWNER TABLE_NAME TABLE_TYPE UNIQUENESS STATUS VISIBILITY PARTITIONED NUM_ROWS:n", e.indexRows)
	e.catalogued("IND_COLUMNS", "INDEX_OWNER INDEX_NAME TABLE_OWNER TABLE_NAME COLUMN_NAME COLUMN_POSITION:n COLUMN_LENGTH:n CHAR_LENGTH:n DESCEND", e.indexColumnRows)
	e.catalogued("IND_EXPRESSIONS", "INDEX_OWNER INDEX_NAME TABLE_OWNER TABLE_NAME COLUMN_EXPRESSION:l COLUMN_POSITION:n", e.indexExpressionRows)
	e.public("NLS_DATABASE_PARAMETERS", "PARAMETER VALUE", func(*run) [][]value {
		return [][]value{row("NLS_CHARACTERSET", cmp.Or(e.options.Charset, "AL32UTF8")), row("NLS_NCHAR_CHARACTERSET", "AL16UTF16")}
	})
}

// catalogued defines ALL_name.
func (e *Engine) catalogued(name, columns string, rows func(*run) [][]value) {
	e.public("ALL_"+name, columns, func(r *run) [][]value {
		e.mu.RLock()
		defer e.mu.RUnlock()
		return rows(r)
	})
}

// visible calls f with the objects that a user may know of, by their names. The
// caller holds mu.
func (e *Engine) visible(r *run, f func(*object)) {
	names := slices.SortedFunc(maps.Keys(e.objects), func(a, b objectName) int {
		return cmp.Or(strings.Compare(a.owner, b.owner), strings.Compare(a.name, b.name))
	})
	for _, n := range names {
		o := e.objects[n]
		if o.synonym != nil && (o.owner == "PUBLIC" || o.owner == r.session.user) ||
			e.hasOn(r.session.user, o, "SELECT", "READ", "INSERT", "UPDATE", "DELETE", "EXECUTE") {
			f(o)
		}
	}
}

func (e *Engine) tableRows(r *run) [][]value {
	var all [][]value
	e.visible(r, func(o *object) {
		if o.table == nil {
			return
		}
		count, blocks, at := null, null, null
		if o.table.def().analyzed >= 0 {
			count, blocks, at = integer(o.table.def().analyzed), integer(o.table.def().analyzed/100+1), wall(kindDate, r.now)
		}
		all = append(all, row(o.owner, o.name, "USERS", "VALID", count, blocks, null, at, "NO", "N", "DISABLED"))
	})
	return all
}

func (e *Engine) mviewRows(r *run) [][]value {
	var all [][]value
	e.visible(r, func(o *object) {
		if o.table != nil && o.table.materialized {
			all = append(all, row(o.owner, o.name, o.name))
		}
	})
	return all
}

func (e *Engine) objectRows(r *run) [][]value {
	var all [][]value
	e.visible(r, func(o *object) {
		created := wall(kindDate, o.created)
		all = append(all, row(o.owner, o.name, o.id, o.kind(), created, created, "VALID", "N", "N"))
		if o.table == nil {
			return
		}
		for _, x := range o.table.def().indexes {
			all = append(all, row(x.owner, x.name, x.id, "INDEX", created, created, "VALID", "N", "N"))
		}
	})
	return all
}

func (e *Engine) synonymRows(r *run) [][]value {
	var all [][]value
	e.visible(r, func(o *object) {
		if o.synonym != nil {
			all = append(all, row(o.owner, o.name, o.synonym.owner, o.synonym.name, o.link))
		}
	})
	return all
}
