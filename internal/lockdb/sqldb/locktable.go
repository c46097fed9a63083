package sqldb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// lockTable is INT_LOCK as PostgreSQL's catalogue has it, as far as two nodes
// could be misled by it.
type lockTable struct {
	// Name is that of the table with its schema, as a statement writes it.
	Name string `json:"name"`
	// Kind is pg_class.relkind: r for a table, p for a partitioned one.
	Kind    string       `json:"kind"`
	Columns []lockColumn `json:"columns"`
	// Unique are the columns of each key that an upsert can name, sorted.
	Unique [][]string `json:"unique"`
}

type lockColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Size is the most characters of a text, or the decimals of a timestamp's
	// seconds; -1 is without a limit.
	Size     int  `json:"size"`
	Nullable bool `json:"nullable"`
	// Default is the expression of a default; empty: none.
	Default string `json:"default"`
}

// catalogueSQL reads all of it in one round trip. A key that is deferrable, or
// holds for some rows only, does not prevent a second insert.
const catalogueSQL = `
SELECT json_build_object(
         'name', format('%I.%I', n.nspname, c.relname),
         'kind', c.relkind,
         'columns', (
           SELECT json_agg(json_build_object(
                    'name', a.attname,
                    'type', format_type(a.atttypid, NULL),
                    'size', CASE WHEN a.atttypmod < 0 THEN -1
                                 WHEN a.atttypid IN ('bpchar'::regtype, 'varchar'::regtype) THEN a.atttypmod - 4
                                 ELSE a.atttypmod END,
                    'nullable', NOT a.attnotnull,
                    'default', coalesce(pg_get_expr(d.adbin, d.adrelid), CASE WHEN a.attidentity <> '' THEN 'identity' ELSE '' END)
                  ) ORDER BY a.attnum)
             FROM pg_attribute a
             LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
         'unique', (
           SELECT json_agg((
                    SELECT json_agg(a.attname ORDER BY a.attname)
                      FROM pg_attribute a
                     WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])))
             FROM pg_index i
            WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate
              AND i.indpred IS NULL AND i.indexprs IS NULL))::text
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.oid = to_regclass('int_lock')`

// readLockTable goes where leases go, so that a busy pool holds up no acquisition.
// There is no row for a table that is not there.
func readLockTable(ctx context.Context, lease *sql.DB) (t lockTable, err error) {
	var text []byte
	err = lease.QueryRowContext(ctx, catalogueSQL).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil {
		return t, fmt.Errorf("look at the table INT_LOCK: %w", err)
	}
	return t, nil
}

func (t lockTable) column(name string) (lockColumn, bool) {
	i := slices.IndexFunc(t.Columns, func(c lockColumn) bool { return c.Name == name })
	if i < 0 {
		return lockColumn{}, false
	}
	return t.Columns[i], true
}

// strangersSQL names what runs under our role when we write to INT_LOCK, and is
// another's: triggers by whose function they call, rules by whose table it is.
const strangersSQL = `
SELECT format('trigger %I, which calls %I.%I of the role %I', t.tgname, n.nspname, p.proname, pg_get_userbyid(p.proowner))
  FROM pg_trigger t
  JOIN pg_proc p ON p.oid = t.tgfoid
  JOIN pg_namespace n ON n.oid = p.pronamespace
 WHERE t.tgrelid = to_regclass('int_lock') AND NOT t.tgisinternal AND t.tgenabled <> 'D' AND pg_get_userbyid(p.proowner) <> current_user
 UNION ALL
SELECT format('rule %I of the role %I', r.rulename, pg_get_userbyid(c.relowner))
  FROM pg_rewrite r
  JOIN pg_class c ON c.oid = r.ev_class
 WHERE c.oid = to_regclass('int_lock') AND r.ev_enabled <> 'D' AND pg_get_userbyid(c.relowner) <> current_user
 ORDER BY 1`

// PathlessTrigger is the condition that the function p of the trigger t looks names up
// in the search_path of its caller. Functions in C and the server's own look up none.
const PathlessTrigger = `NOT EXISTS (SELECT 1 FROM unnest(p.proconfig) AS c (setting) WHERE starts_with(c.setting, 'search_path='))
   AND p.prolang NOT IN (SELECT l.oid FROM pg_language l WHERE l.lanname IN ('c', 'internal'))`

// pathlessSQL names the functions of triggers for which our sessions have no
// search_path: one that names no schema fails each lock.
const pathlessSQL = `
SELECT DISTINCT p.oid::regprocedure::text
  FROM pg_trigger t
  JOIN pg_proc p ON p.oid = t.tgfoid
 WHERE t.tgrelid = to_regclass('int_lock') AND NOT t.tgisinternal AND t.tgenabled <> 'D' AND ` + PathlessTrigger + `
 ORDER BY 1`

// hangers returns what strangersSQL and pathlessSQL name. SQLite has no roles.
func (db *DB) hangers(ctx context.Context) (strangers, pathless []string, err error) {
	if db.postgres == nil {
		return nil, nil, nil
	}
	for text, names := range map[string]*[]string{strangersSQL: &strangers, pathlessSQL: &pathless} {
		err = errors.Join(err, db.Query(ctx, "look at what hangs on INT_LOCK", text, func(scan func(...any) error) error {
			var name string
			err := scan(&name)
			*names = append(*names, name)
			return err
		}))
	}
	return strangers, pathless, err
}

const ownerSQL = `
SELECT pg_get_userbyid(c.relowner)::text
  FROM pg_class c
 WHERE c.oid = to_regclass('int_lock') AND pg_get_userbyid(c.relowner) <> current_user`

// owner returns the role to which INT_LOCK belongs; empty where that is ours, or
// where there is no such table.
func (db *DB) owner(ctx context.Context) (owner string, err error) {
	if db.postgres == nil {
		return "", nil
	}
	err = db.Query(ctx, "look at the owner of INT_LOCK", ownerSQL,
		func(scan func(...any) error) error { return scan(&owner) })
	return owner, err
}

// WarnOfStrangers logs the triggers and rules of other roles on INT_LOCK, whose code
// runs with the rights of this process, and the functions that may miss a search_path.
// Call it once at the start of a node.
func (db *DB) WarnOfStrangers(ctx context.Context) error {
	names, functions, err := db.hangers(ctx)
	if len(names) > 0 {
		db.log.Warn("Code of other roles hangs on INT_LOCK and runs with the rights of this node; drop what is not needed", "code", names)
	}
	if len(functions) > 0 {
		db.log.Warn("Triggers of INT_LOCK call functions that have no search_path of their own, and sessions of this node have none: "+
			"where one names no schema, no lock can be taken; ALTER FUNCTION … SET search_path = …", "functions", functions)
	}
	return err
}

// warnOfOwner logs that INT_LOCK was there before our first migration, and is
// another's.
func (db *DB) warnOfOwner(ctx context.Context) error {
	owner, err := db.owner(ctx)
	if err == nil && owner != "" {
		db.log.Warn("INT_LOCK is there already and belongs to another role, which can run code with the rights of the nodes "+
			"and take their locks; if it is not that of the Java nodes, name another schema in database.url (…?search_path=NAME)", "owner", owner)
	}
	return err
}
