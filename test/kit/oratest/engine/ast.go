package engine

import "strings"

// expr is an expression as it was parsed.
type expr interface{}

type (
	// nameExpr is a column, a pseudo-column or a function without arguments.
	nameExpr struct {
		parts []token
	}
	// starExpr is * in a select list or in COUNT(*).
	starExpr    struct{}
	literalExpr struct {
		value value
		typ   dataType
	}
	bindExpr struct {
		index int // of its occurrence, from 0
	}
	negationExpr struct {
		x expr
	}
	// binaryExpr is arithmetic, ||, a comparison, AND or OR.
	binaryExpr struct {
		op   string
		l, r expr
	}
	callExpr struct {
		name []token
		args []expr
	}
	caseExpr struct {
		operand expr // nil where each WHEN is a condition
		whens   [][2]expr
		other   expr
	}
	inExpr struct {
		x    expr
		list []expr
		sub  *query
	}
	nullExpr struct {
		x   expr
		not bool
	}
	subqueryExpr struct {
		sub *query
	}
	castExpr struct {
		x   expr
		typ dataType
	}
	// zoneExpr is x AT TIME ZONE zone.
	zoneExpr struct {
		x, zone expr
	}
)

// path is the name of a function or procedure, without the owner of the system's.
func (c callExpr) path() string {
	var all []string
	for _, p := range c.name {
		all = append(all, p.text)
	}
	return strings.TrimPrefix(strings.Join(all, "."), "SYS.")
}

// query is a SELECT with everything that follows it.
type query struct {
	block *block
	order []orderItem
	fetch expr // nil without FETCH FIRST
}

// block is one SELECT … FROM … WHERE.
type block struct {
	items []selectItem
	from  []fromItem
	where expr
	// grouped says that it has aggregates, rownum that it has ROWNUM, subqueries
	// that an item has one.
	grouped, rownum, subqueries bool
}

type selectItem struct {
	x     expr
	alias string
	// heading is the text of the expression, the column's name without an alias.
	heading string
}

type fromItem struct {
	schema, table string
	sub           *query
	alias         string
	pos           int
}

type orderItem struct {
	x          expr
	descending bool // and NULL first
}

// statement is anything that can be executed.
type statement interface{}

type (
	selectStatement struct {
		query *query
	}
	explainStatement struct {
		id    string
		inner statement
	}
	// insertStatement has values, or a query.
	insertStatement struct {
		schema, table string
		columns       []string
		values        []expr
		query         *query
	}
	updateStatement struct {
		from fromItem
		set  []assignment
		cond expr
	}
	deleteStatement struct {
		from fromItem
		cond expr
	}
	assignment struct {
		column string
		x      expr
		pos    int
	}
	transactionStatement struct {
		verb string // COMMIT, ROLLBACK, READ ONLY, READ WRITE, ISOLATION
	}
	alterSession struct {
		settings [][2]string
	}
	plsqlBlock struct {
		variables  []columnDefinition
		statements []statement
	}
	// callStatement, assignStatement and selectInto exist in PL/SQL alone.
	callStatement struct {
		call callExpr
	}
	assignStatement struct {
		name token
		x    expr
	}
	selectInto struct {
		query *query
		into  []token
	}
	createTable struct {
		schema, name string
		columns      []columnDefinition
		constraints  []constraintDefinition
		as           *query // of a materialized view
		byIndex      bool   // ORGANIZATION INDEX
	}
	columnDefinition struct {
		name        string
		typ         dataType
		notNull     bool
		def         expr
		preset      string // the text of def
		constraints []constraintDefinition
	}
	constraintDefinition struct {
		name    string
		primary bool // or UNIQUE
		columns []string
	}
	createIndex struct {
		unique       bool
		schema, name string
		tableSchema  string
		table        string
		columns      []string
		descending   []bool
		storage      indexStorage
	}
	createView struct {
		schema, name string
		query        *query
	}
	createSynonym struct {
		replace      bool
		schema, name string
		onSchema, on string
		link         string
	}
	createUser struct {
		name string
	}
	grantStatement struct {
		revoke     bool
		privileges []string
		schema     string
		object     string
		grantees   []string
	}
	alterTable struct {
		schema, name string
		add          columnDefinition
		drop         string
		renameFrom   string
		renameTo     string
	}
	dropStatement struct {
		what         string // TABLE, VIEW, SYNONYM or FUNCTION
		schema, name string
	}
	// createFunction makes a function that changes rows.
	createFunction struct {
		name string
		typ  dataType
	}
	// noStatement changes nothing that the engine knows of.
	noStatement struct{}
)
