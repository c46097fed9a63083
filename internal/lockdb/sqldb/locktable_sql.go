package sqldb

// tableSQL are the statements on INT_LOCK in the catalogue of PostgreSQL, and on the clock.
type tableSQL struct {
	Now string
	// Catalogue reads all of INT_LOCK in one round trip. A key that is deferrable, or holds for
	// some rows only, does not prevent a second insert.
	Catalogue string
	// Strangers names what runs under our role when we write to INT_LOCK, and is another's:
	// triggers by whose function they call, rules by whose table it is.
	Strangers string
	// Pathless names the functions of triggers for which our sessions have no search_path: one
	// that names no schema fails each lock.
	Pathless string
	// Owner is another role to which INT_LOCK belongs.
	Owner string
}

func tableTexts(backend string) tableSQL {
	if backend == "sqlite" {
		return tableSQL{Now: nowSQL}
	}
	return postgresTableSQL
}

const nowSQL = `SELECT {now}`

// PathlessTrigger is the condition that the function p of the trigger t looks names up
// in the search_path of its caller. Functions in C and the server's own look up none.
const PathlessTrigger = `NOT EXISTS (SELECT 1 FROM unnest(p.proconfig) AS c (setting) WHERE starts_with(c.setting, 'search_path='))
   AND p.prolang NOT IN (SELECT l.oid FROM pg_language l WHERE l.lanname IN ('c', 'internal'))`

var postgresTableSQL = tableSQL{
	Now: nowSQL,
	Catalogue: `
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
 WHERE c.oid = to_regclass('int_lock')`,
	Strangers: `
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
 ORDER BY 1`,
	Pathless: `
SELECT DISTINCT p.oid::regprocedure::text
  FROM pg_trigger t
  JOIN pg_proc p ON p.oid = t.tgfoid
 WHERE t.tgrelid = to_regclass('int_lock') AND NOT t.tgisinternal AND t.tgenabled <> 'D' AND ` + PathlessTrigger + `
 ORDER BY 1`,
	Owner: `
SELECT pg_get_userbyid(c.relowner)::text
  FROM pg_class c
 WHERE c.oid = to_regclass('int_lock') AND pg_get_userbyid(c.relowner) <> current_user`,
}
