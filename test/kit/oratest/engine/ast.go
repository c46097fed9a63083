package engine

// expr is an expression as it was parsed.
type expr interface{}

type (
	// nameExpr is a column, a pseudo-column or a function without arguments.
	nameExpr struct {
		parts []token
	}
	// starExpr is * or q.* in a select list or in COUNT(*).
	starExpr struct {
		qualifier []token
	}
	literalExpr struct {
		value value
		typ   dataType
	}
	bindExpr struct {
		index int // of its occurrence, from 0
		pos   int
	}
	unaryExpr struct {
		op string // NOT or -
		x  expr
	}
	// binaryExpr is arithmetic, ||, a comparison, AND or OR.
	binaryExpr struct {
		op   string
		l, r expr
	}
	callExpr struct {
		name     []token
		args     []expr
		names    []string // of arguments passed by name, else empty
		distinct bool
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
		not  bool
	}
	likeExpr struct {
		x, pattern, escape expr
		not                bool
	}
	nullExpr struct {
		x   expr
		not bool
	}
	existsExpr struct {
		sub *query
	}
	subqueryExpr struct {
		sub *query
	}
	castExpr struct {
		x   expr
		typ dataType
	}
	// zoneExpr is x AT TIME ZONE zone, or AT LOCAL where zone is nil.
	zoneExpr struct {
		x, zone expr
	}
	extractExpr struct {
		field string
		x     expr
	}
)

// query is a SELECT with everything that follows it.
type query struct {
	with   []withClause
	blocks []*block
	// distinct says that the blocks are joined by UNION, not by UNION ALL.
	distinct bool
	order    []orderItem
	// fetch and offset are nil without FETCH FIRST and OFFSET.
	fetch, offset expr
	forUpdate     bool
}

type withClause struct {
	name string
	sub  *query
}

// block is one SELECT … FROM … WHERE … GROUP BY.
type block struct {
	distinct bool
	items    []selectItem
	from     []fromItem
	where    expr
	group    []expr
	having   expr
	pos      int
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
	function      expr // of TABLE(…)
	alias         string
	on            expr
	outer         bool // a LEFT JOIN
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
	insertStatement struct {
		targets []insertTarget
		query   *query
	}
	insertTarget struct {
		schema, table string
		columns       []string
		rows          [][]expr
		pos           int
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
		columns      []string
		query        *query
		text         string
	}
	createSynonym struct {
		public, replace bool
		schema, name    string
		onSchema, on    string
		link            string
	}
	createUser struct {
		name, password string
		role           bool
	}
	alterUser struct {
		name, password string
		lock, unlock   bool
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
		add, modify  []columnDefinition
		constraints  []constraintDefinition
		drop         []string
		renameFrom   string
		renameTo     string
	}
	dropStatement struct {
		what         string // TABLE, VIEW, INDEX, SYNONYM, PUBLIC SYNONYM, USER, ROLE, FUNCTION
		schema, name string
	}
	truncateStatement struct {
		schema, name string
	}
	analyzeStatement struct {
		schema, name string
	}
	createFunction struct {
		name       string
		body       statement
		typ        dataType
		ret        expr
		autonomous bool
	}
	// noStatement changes nothing that the engine knows of.
	noStatement struct{}
)
