package oracle

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// builtinOwners are the accounts that come with the database. ALL_USERS tells them apart
// from version 12 on alone.
var builtinOwners = []string{
	"SYS", "SYSTEM", "PUBLIC", "XDB", "MDSYS", "CTXSYS", "OUTLN", "DBSNMP", "WMSYS", "ORDSYS", "ORDDATA", "ORDPLUGINS", "OLAPSYS", "LBACSYS",
	"DVSYS", "DVF", "GSMADMIN_INTERNAL", "APPQOSSYS", "OJVMSYS", "AUDSYS", "EXFSYS", "FLOWS_FILES", "DBSFWUSER", "SYSMAN", "GGSYS", "ANONYMOUS",
	"REMOTE_SCHEDULER_AGENT", "SI_INFORMTN_SCHEMA", "MGMT_VIEW",
}

// ALL_… has what this account may read or write. Whether a trigger keeps a column is seen
// by the owner of the trigger alone.
var allSQL = `SELECT o.OWNER, o.OBJECT_NAME, o.OBJECT_TYPE, SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA')
FROM ALL_OBJECTS o
WHERE o.OBJECT_TYPE IN ('TABLE', 'VIEW') AND o.OWNER <> '` + strings.Join(builtinOwners, "' AND o.OWNER <> '") + `'`

// Each of these is of one owner, or of one of its tables: see [session.look].
const (
	countsSQL = `SELECT t.TABLE_NAME, TO_CHAR(t.NUM_ROWS) FROM ALL_TABLES t WHERE t.OWNER = :1%s`
	// The columns of all keys are read, those of the primary ones are chosen here. One that
	// is disabled, as those of views are, keeps no two rows apart.
	primarySQL = `SELECT t.CONSTRAINT_NAME, t.TABLE_NAME FROM ALL_CONSTRAINTS t WHERE t.OWNER = :1%s AND t.CONSTRAINT_TYPE = 'P' AND t.STATUS = 'ENABLED'`
	partsSQL   = `SELECT t.CONSTRAINT_NAME, t.COLUMN_NAME FROM ALL_CONS_COLUMNS t WHERE t.OWNER = :1%s ORDER BY t.CONSTRAINT_NAME, t.POSITION`
	firstSQL   = `SELECT t.TABLE_NAME, t.COLUMN_NAME FROM ALL_IND_COLUMNS t WHERE t.TABLE_OWNER = :1%s AND t.COLUMN_POSITION = 1`
	// The text of a default is a LONG, which is fetched by itself: so only times are read.
	timesSQL = `SELECT t.TABLE_NAME, t.COLUMN_NAME, t.DATA_TYPE, t.NULLABLE, t.DATA_DEFAULT
FROM ALL_TAB_COLUMNS t
WHERE t.OWNER = :1%s AND (t.DATA_TYPE = 'DATE' OR t.DATA_TYPE >= 'TIMESTAMP' AND t.DATA_TYPE < 'TIMESTAMQ')
ORDER BY t.TABLE_NAME, t.COLUMN_ID`
)

// look looks something up of one table of an owner, or of all where table is empty.
func (c *session) look(ctx context.Context, operation, sql, owner, table string) ([][]string, error) {
	if table == "" {
		return c.rows(ctx, operation, fmt.Sprintf(sql, ""), owner)
	}
	return c.rows(ctx, operation, fmt.Sprintf(sql, " AND t.TABLE_NAME = :2"), owner, table)
}

// Tables implements [source.Database].
func (s *Source) Tables(ctx context.Context, limit int) ([]source.Table, error) {
	return inSession(ctx, s, func(c *session) ([]source.Table, error) { return c.tables(ctx, limit) })
}

// PrimaryKey implements [observer.Source].
func (s *Source) PrimaryKey(ctx context.Context, q observer.Query) ([]string, error) {
	return inSession(ctx, s, func(c *session) ([]string, error) {
		r, err := c.relation(ctx, q)
		if err != nil {
			return nil, err
		}
		return c.primaryKey(ctx, r)
	})
}

func (c *session) tables(ctx context.Context, limit int) ([]source.Table, error) {
	all, err := c.rows(ctx, "list tables", allSQL)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(row []string) bool { return isInternal(row[1]) })
	slices.SortFunc(all, slices.Compare)
	all = all[:min(len(all), limit)]
	tables := make([]source.Table, len(all))
	owned := make(map[string]map[string]*source.Table)
	for i, row := range all {
		tables[i] = source.Table{Schema: row[0], Name: row[1], View: row[2] == "VIEW", Rows: -1}
		if row[0] == row[3] {
			tables[i].Schema = ""
		}
		if owned[row[0]] == nil {
			owned[row[0]] = make(map[string]*source.Table)
		}
		owned[row[0]][row[1]] = &tables[i]
	}
	for owner, of := range owned {
		if err := c.fill(ctx, owner, of); err != nil {
			return nil, err
		}
	}
	return tables, nil
}

// fill adds what the catalogue says of the tables of an owner.
func (c *session) fill(ctx context.Context, owner string, tables map[string]*source.Table) error {
	counts, err := c.look(ctx, "list tables", countsSQL, owner, "")
	if err != nil {
		return err
	}
	keys, err := c.primaryKeys(ctx, owner, "")
	if err != nil {
		return err
	}
	for _, row := range counts {
		t := tables[row[0]]
		if n, err := strconv.ParseInt(row[1], 10, 64); err == nil && t != nil { // NULL: never analyzed.
			t.Rows, t.Analyzed = n, true
		}
	}
	for name, t := range tables {
		t.Key = keys[name]
	}
	first, err := c.look(ctx, "list tables", firstSQL, owner, "")
	if err != nil {
		return err
	}
	indexed := grouped(first)
	return c.times(ctx, owner, "", tables, func(table string, column source.TimeColumn) source.Answer {
		found := source.YesIf(slices.Contains(indexed[table], column.Name))
		if found == source.No && kindOf(column.Type) == kindTimestampTZ {
			return source.Unknown // Its index is one of an expression.
		}
		return found
	})
}

// primaryKeys returns the columns of that of a table, or of each of an owner.
func (c *session) primaryKeys(ctx context.Context, owner, table string) (map[string][]string, error) {
	const operation = "read the primary key"
	primary, err := c.look(ctx, operation, primarySQL, owner, table)
	if err != nil || len(primary) == 0 {
		return nil, err
	}
	rows, err := c.look(ctx, operation, partsSQL, owner, table)
	if err != nil {
		return nil, err
	}
	parts, keys := grouped(rows), make(map[string][]string)
	for _, row := range primary {
		keys[row[1]] = parts[row[0]]
	}
	return keys, nil
}

// isInternal reports whether a table is the database's own: dropped, or the log of a
// materialized view.
func isInternal(table string) bool {
	return strings.HasPrefix(table, "BIN$") || strings.HasPrefix(table, "MLOG$_") || strings.HasPrefix(table, "RUPD$_")
}

// grouped has the second values by the first.
func grouped(rows [][]string) map[string][]string {
	return fn.Group(rows, func(row []string) (first, second string) { return row[0], row[1] })
}

// times adds the times of a table, or of all of an owner, to the tables of those names.
func (c *session) times(ctx context.Context, owner, table string, tables map[string]*source.Table, indexed func(table string, column source.TimeColumn) source.Answer) error {
	rows, err := c.look(ctx, "look what keeps the times", timesSQL, owner, table)
	for _, row := range rows {
		t, column := tables[row[0]], source.TimeColumn{
			Name: row[1], Type: typeName(row[2]), Nullable: row[3] != "N",
			OnUpdate: source.No, Trigger: source.Unknown,
		}
		column.SetDefault(strings.TrimSpace(row[4]))
		switch kindOf(column.Type) {
		case kindDate, kindTimestamp, kindTimestampLTZ, kindTimestampTZ:
		default:
			continue
		}
		if t != nil {
			column.Indexed = indexed(row[0], column)
			t.Add(column)
		}
	}
	return err
}

// Sample implements [source.Database]. It reads times to the second.
func (s *Source) Sample(ctx context.Context, t *source.Table) error {
	rows, err := inSession(ctx, s, func(c *session) ([][]string, error) {
		r, err := c.relation(ctx, observer.Query{Table: t.FullName()})
		if err != nil {
			return nil, err
		}
		items, order := t.SampleItems(source.Quote, func(name string) string { return "TO_CHAR(" + name + ", 'YYYY-MM-DD HH24:MI:SS')" })
		return c.small(ctx, source.Reading, "sample the times", fmt.Sprintf("SELECT * FROM (SELECT %s FROM %s q ORDER BY %s) WHERE ROWNUM <= %d",
			items, r.from, order, source.SampledRows))
	})
	if err == nil {
		source.AddSample(t, rows, func(cell string) time.Time {
			at, _ := time.Parse(time.DateTime, cell) // NULL is zero.
			return at
		})
	}
	return err
}
