-- Table.Now
PREPARE "Table.Now" AS
SELECT clock_timestamp();

-- Table.Catalogue
PREPARE "Table.Catalogue" AS
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
 WHERE c.oid = to_regclass('int_lock');

-- Table.Strangers
PREPARE "Table.Strangers" AS
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
 ORDER BY 1;

-- Table.Pathless
PREPARE "Table.Pathless" AS
SELECT DISTINCT p.oid::regprocedure::text
  FROM pg_trigger t
  JOIN pg_proc p ON p.oid = t.tgfoid
 WHERE t.tgrelid = to_regclass('int_lock') AND NOT t.tgisinternal AND t.tgenabled <> 'D' AND NOT EXISTS (SELECT 1 FROM unnest(p.proconfig) AS c (setting) WHERE starts_with(c.setting, 'search_path='))
   AND p.prolang NOT IN (SELECT l.oid FROM pg_language l WHERE l.lanname IN ('c', 'internal'))
 ORDER BY 1;

-- Table.Owner
PREPARE "Table.Owner" AS
SELECT pg_get_userbyid(c.relowner)::text
  FROM pg_class c
 WHERE c.oid = to_regclass('int_lock') AND pg_get_userbyid(c.relowner) <> current_user;

-- Find
PREPARE "Find" AS
SELECT c.relname, n.nspname, r.rolname, c.relkind,
       CASE WHEN r.oid OPERATOR(pg_catalog.=) me.oid OR pg_catalog.pg_has_role(r.oid, d.datdba, 'MEMBER')
                 OR NOT me.rolsuper AND pg_catalog.pg_has_role(r.oid, 'MEMBER') THEN 3
            WHEN pg_catalog.pg_has_role(r.oid, n.nspowner, 'MEMBER') THEN 2
            WHEN NOT pg_catalog.has_schema_privilege(n.oid, 'CREATE') AND NOT EXISTS (
                   SELECT FROM pg_catalog.aclexplode(coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner))) a
                    WHERE a.privilege_type OPERATOR(pg_catalog.=) 'CREATE' AND a.grantee OPERATOR(pg_catalog.<>) r.oid
                      AND NOT pg_catalog.pg_has_role(a.grantee, n.nspowner, 'MEMBER') AND NOT pg_catalog.pg_has_role(a.grantee, d.datdba, 'MEMBER')) THEN 1
            ELSE 0 END
  FROM pg_catalog.unnest($1::pg_catalog.text[]) WITH ORDINALITY AS p (name, n)
  JOIN pg_catalog.pg_namespace n ON n.nspname OPERATOR(pg_catalog.=) p.name::pg_catalog.name
  JOIN pg_catalog.pg_class c ON c.relnamespace OPERATOR(pg_catalog.=) n.oid
  JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) c.relowner
  JOIN pg_catalog.pg_roles me ON me.rolname OPERATOR(pg_catalog.=) current_user
  JOIN pg_catalog.pg_database d ON d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
 WHERE c.relname OPERATOR(pg_catalog.=) ANY ('{int_lock,obs_migration}'::pg_catalog.name[])
   AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,v,m,f}'::pg_catalog."char"[])
 ORDER BY p.n USING OPERATOR(pg_catalog.<);

