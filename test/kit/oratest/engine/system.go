package engine

import "strings"

// virtual is a view of the system whose rows are made when they are read.
type virtual struct {
	name    string
	columns []virtualColumn
	rows    func(*run) [][]value
	public  bool // everybody may read it
}

type virtualColumn struct {
	name string
	typ  dataType
}

// columnsOf reads "NAME NUM_ROWS:n CREATED:d …": n is a number, d a DATE, l a LONG, and the
// others are text.
func columnsOf(spec string) []virtualColumn {
	var all []virtualColumn
	for _, field := range strings.Fields(spec) {
		name, typ, _ := strings.Cut(field, ":")
		c := virtualColumn{name, varchar(128)}
		switch typ {
		case "n":
			c.typ = plain(typeNumber)
		case "d":
			c.typ = plain(typeDate)
		case "l":
			c.typ = plain(typeLong)
		}
		all = append(all, c)
	}
	return all
}

// row makes a row from Go values: text, numbers, or values.
func row(all ...any) []value {
	out := make([]value, len(all))
	for i, v := range all {
		switch v := v.(type) {
		case string:
			out[i] = text(v)
		case int:
			out[i] = integer(int64(v))
		case int64:
			out[i] = integer(v)
		case bool:
			out[i] = text(map[bool]string{true: "Y", false: "N"}[v])
		case value:
			out[i] = v
		}
	}
	return out
}

// defineSystem makes the views of the system and their public synonyms.
func (e *Engine) defineSystem() {
	e.users["SYS"] = newUser()
	e.public("DUAL", "DUMMY", func(*run) [][]value { return dual })
	e.defineCatalogue()
	e.defineFixed()
	e.definePlanTable()
}

var dual = [][]value{{text("X")}}

// public defines a view that everybody may read.
func (e *Engine) public(name, columns string, rows func(*run) [][]value) {
	e.system(name, name, columns, true, rows)
}

// fixed defines V$name, which needs a grant on SYS.V_$name, and GV$name, which
// has the number of the instance before the other columns.
func (e *Engine) fixed(name, columns string, rows func(instance int) [][]value) {
	e.system("V_$"+name, "V$"+name, columns, false, func(*run) [][]value { return rows(1) })
	e.system("GV_$"+name, "GV$"+name, "INST_ID:n "+columns, false, func(*run) [][]value {
		var all [][]value
		for i := 1; i <= e.options.Instances; i++ {
			for _, one := range rows(i) {
				all = append(all, append(row(i), one...))
			}
		}
		return all
	})
}

func (e *Engine) system(name, synonym, columns string, public bool, rows func(*run) [][]value) {
	own := objectName{"SYS", name}
	e.objects[own] = &object{objectName: own, virtual: &virtual{
		name: name, columns: columnsOf(columns), rows: rows, public: public}}
	alias := objectName{"PUBLIC", synonym}
	e.objects[alias] = &object{objectName: alias, synonym: &own}
}
