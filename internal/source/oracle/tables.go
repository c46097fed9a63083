package oracle

import (
	"context"
	"slices"
	"strconv"
	"strings"

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

// Each of these is of one owner.
const (
	countsSQL = `SELECT t.TABLE_NAME, TO_CHAR(t.NUM_ROWS) FROM ALL_TABLES t WHERE t.OWNER = :1`
	// The columns of all keys are read, those of the primary ones are chosen here.
	primarySQL = `SELECT c.CONSTRAINT_NAME, c.TABLE_NAME FROM ALL_CONSTRAINTS c WHERE c.OWNER = :1 AND c.CONSTRAINT_TYPE = 'P'`
	partsSQL   = `SELECT k.CONSTRAINT_NAME, k.COLUMN_NAME FROM ALL_CONS_COLUMNS k WHERE k.OWNER = :1 ORDER BY k.CONSTRAINT_NAME, k.POSITION`
	firstSQL   = `SELECT c.TABLE_NAME, c.COLUMN_NAME FROM ALL_IND_COLUMNS c WHERE c.TABLE_OWNER = :1 AND c.COLUMN_POSITION = 1`
	// The text of a default is a LONG, its length is none.
	timesSQL = `SELECT c.TABLE_NAME, c.COLUMN_NAME, c.DATA_TYPE, c.NULLABLE, TO_CHAR(c.DEFAULT_LENGTH)
FROM ALL_TAB_COLUMNS c
WHERE c.OWNER = :1
ORDER BY c.TABLE_NAME, c.COLUMN_ID`
)

// Tables implements [source.Database].
func (s *Source) Tables(ctx context.Context, limit int) (tables []source.Table, err error) {
	err = s.session(ctx, func(ctx context.Context, c *session) (err error) {
		tables, err = catalog{c}.tables(ctx, limit)
		return err
	})
	return tables, err
}

func (c catalog) tables(ctx context.Context, limit int) ([]source.Table, error) {
	all, err := c.rows(ctx, "list tables", allSQL)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(row []string) bool { return isInternal(row[1]) })
	slices.SortFunc(all, slices.Compare)
	var tables []source.Table
	var of owned
	for i, row := range all[:min(len(all), limit)] {
		if i == 0 || row[0] != all[i-1][0] {
			if of, err = c.owned(ctx, row[0]); err != nil {
				return nil, err
			}
		}
		t := source.Table{Schema: row[0], Name: row[1], View: row[2] == "VIEW", Rows: -1, Key: of.keys[row[1]], Times: of.times[row[1]]}
		if row[0] == row[3] {
			t.Schema = ""
		}
		if t.View {
			source.Unseen(t.Times)
		}
		for _, count := range of.counts[row[1]] {
			if n, err := strconv.ParseInt(count, 10, 64); err == nil { // NULL: never analyzed.
				t.Rows = n
			}
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// owned is what the catalogue says of the tables of one owner, by their names.
type owned struct {
	counts, keys map[string][]string
	times        map[string][]source.TimeColumn
}

func (c catalog) owned(ctx context.Context, owner string) (owned, error) {
	var answers [5][][]string
	for i, sql := range []string{countsSQL, primarySQL, partsSQL, firstSQL, timesSQL} {
		var err error
		if answers[i], err = c.rows(ctx, "list tables", sql, owner); err != nil {
			return owned{}, err
		}
	}
	o := owned{counts: grouped(answers[0]), keys: make(map[string][]string), times: timesOf(answers[4], grouped(answers[3]))}
	parts := grouped(answers[2])
	for _, row := range answers[1] {
		o.keys[row[1]] = parts[row[0]]
	}
	return o, nil
}

// isInternal reports whether a table is the database's own: dropped, or the log of a
// materialized view.
func isInternal(table string) bool {
	return strings.HasPrefix(table, "BIN$") || strings.HasPrefix(table, "MLOG$_") || strings.HasPrefix(table, "RUPD$_")
}

// grouped has the second values by the first.
func grouped(rows [][]string) map[string][]string {
	all := make(map[string][]string)
	for _, row := range rows {
		all[row[0]] = append(all[row[0]], row[1])
	}
	return all
}

func timesOf(rows [][]string, indexed map[string][]string) map[string][]source.TimeColumn {
	times := make(map[string][]source.TimeColumn)
	for _, row := range rows {
		c := source.TimeColumn{
			Name: row[1], Type: typeName(row[2]), Nullable: row[3] != "N",
			Default: source.YesIf(row[4] != ""), OnUpdate: source.No, Trigger: source.Unknown,
			Indexed: source.YesIf(slices.Contains(indexed[row[0]], row[1])),
		}
		switch kindOf(c.Type) {
		case kindTimestampTZ:
			if c.Indexed == source.No {
				c.Indexed = source.Unknown // Its index is one of an expression.
			}
		case kindDate, kindTimestamp, kindTimestampLTZ:
		default:
			continue
		}
		times[row[0]] = append(times[row[0]], c)
	}
	return times
}
