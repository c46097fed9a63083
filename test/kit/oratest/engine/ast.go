package engine

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
		pos   int
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
		name  []token
		args  []expr
		names []string // of arguments passed by name, else empty
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
	descending bool
	// nullsFirst holds where NULLS FIRST or LAST was written, or by default for
	// a descending order.
	nullsFirst bool
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
	// insertStatement has rows of values, or a query.
	insertStatement struct {
		schema, table string
		columns       []string
		rows          [][]expr
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
		as           *query
		materialized bool
		byIndex      bool // ORGANIZATION INDEX
	}
	columnDefinition struct {
		name        string
		typ         dataType
		hasType     bool
		nullable    *bool
		def         expr
		constraints []constraintDefinition
	}
	constraintDefinition struct {
		name    string
		kind    byte // P, U, R or C, as CONSTRAINT_TYPE
		columns []string
	}
	createIndex struct {
		unique        bool
		schema, name  string
		tableSchema   string
		table         string
		columns       []string
		descending    []bool
		hasExpression bool
		storage       indexStorage
	}
	createView struct {
		replace      bool
		schema, name string
		query        *query
	}
	createSynonym struct {
		public, replace bool
		schema, name    string
		onSchema, on    string
		link            string
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
		add          []columnDefinition
		constraints  []constraintDefinition
		drop         []string
		renameFrom   string
		renameTo     string
	}
	dropStatement struct {
		what         string // TABLE, VIEW, INDEX, SYNONYM, PUBLIC SYNONYM, USER, ROLE, FUNCTION
		schema, name string
	}
	createFunction struct {
		name string
		body statement // nil for one that returns a value and does nothing else
		typ  dataType
		ret  expr
	}
	// noStatement changes nothing that the engine knows of.
	noStatement struct{}
)
