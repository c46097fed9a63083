package springtest

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// catalogueSQL gathers all that PostgreSQL knows of INT_LOCK but for its
// statistics: columns, defaults, keys of it and to it, indexes, triggers,
// rules, policies, owner, grants, and whatever else depends on it.
const catalogueSQL = `
WITH t AS (SELECT to_regclass('int_lock') AS oid),
     all_of_it AS (SELECT oid FROM t UNION SELECT indexrelid FROM pg_index, t WHERE indrelid = t.oid)
SELECT jsonb_pretty(jsonb_build_object(
  'class', (SELECT jsonb_agg(to_jsonb(c) - '{relpages,reltuples,relallvisible,relfrozenxid,relminmxid}'::text[] ORDER BY c.oid)
              FROM pg_class c JOIN all_of_it USING (oid)),
  'columns', (SELECT jsonb_agg(to_jsonb(a) ORDER BY a.attrelid, a.attnum) FROM pg_attribute a JOIN all_of_it ON attrelid = oid),
  'defaults', (SELECT jsonb_agg(to_jsonb(d)) FROM pg_attrdef d, t WHERE adrelid = t.oid),
  'constraints', (SELECT jsonb_agg(to_jsonb(c) || jsonb_build_object('def', pg_get_constraintdef(c.oid)) ORDER BY c.oid)
                    FROM pg_constraint c, t WHERE t.oid IN (conrelid, confrelid)),
  'indexes', (SELECT jsonb_agg(to_jsonb(i) || jsonb_build_object('def', pg_get_indexdef(indexrelid)) ORDER BY indexrelid)
                FROM pg_index i, t WHERE indrelid = t.oid),
  'triggers', (SELECT jsonb_agg(to_jsonb(g) ORDER BY g.oid) FROM pg_trigger g, t WHERE tgrelid = t.oid),
  'rules', (SELECT jsonb_agg(to_jsonb(r) ORDER BY r.oid) FROM pg_rewrite r, t WHERE ev_class = t.oid),
  'policies', (SELECT jsonb_agg(to_jsonb(p) ORDER BY p.oid) FROM pg_policy p, t WHERE polrelid = t.oid),
  'comments', (SELECT jsonb_agg(to_jsonb(d)) FROM pg_description d, t WHERE objoid = t.oid),
  'children', (SELECT jsonb_agg(to_jsonb(i)) FROM pg_inherits i, t WHERE t.oid IN (inhrelid, inhparent)),
  'publications', (SELECT jsonb_agg(to_jsonb(p)) FROM pg_publication_rel p, t WHERE prrelid = t.oid),
  'dependents', (SELECT jsonb_agg(to_jsonb(d) ORDER BY classid, objid, objsubid, refobjsubid) FROM pg_depend d JOIN all_of_it ON refobjid = oid)
))`

// Catalogue describes INT_LOCK, so that two descriptions are equal exactly when
// nothing was done to the table, nor hung on it.
func Catalogue(ctx context.Context, url string) (string, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", fmt.Errorf("describe INT_LOCK: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var text string
	if err := conn.QueryRow(ctx, catalogueSQL).Scan(&text); err != nil {
		return "", fmt.Errorf("describe INT_LOCK: %w", err)
	}
	return text, nil
}
