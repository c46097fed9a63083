package lockdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// claimSQL locks the rows of INT_LOCK, in one order, and makes those that are missing.
const claimSQL = `
INSERT INTO int_lock AS l (lock_key, region, client_id, {cols})
SELECT want.lock_key, want.region, want.client_id, {vals want.ttl}
  FROM (SELECT k::char(36) AS lock_key, g::varchar(100) AS region, c::char(36) AS client_id, s AS ttl
          FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[]) AS u(k, g, c, s)) want
 ORDER BY want.lock_key, want.region
ON CONFLICT (lock_key, region) DO UPDATE SET client_id = l.client_id`

// grantSQL takes the locks whose rows claimSQL has locked, all or none, and undoes what
// claimSQL has made when it takes none. A holder that has ended and would be in the way stays
// so, whatever its guarded transaction has written meanwhile, whose end the deletion of its
// row waits for. Any other one may live on.
var grantSQL = strings.NewReplacer("{standing}", standingSQL("want.mode", "want.ttl"), "{behind}", behindSQL, "{live}", liveHoldSQL,
	"{conflict}", conflictSQL("h.mode", "taken.mode")).Replace(`
WITH want AS (
  SELECT n, k::char(36) AS lock_key, g::varchar(100) AS region, c::char(36) AS own, s AS ttl, t::char(36) AS term,
         m AS mode, name, node, d AS descriptor, meta AS metadata, w::char(36) AS waiter, priority, ticket, holds
    FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
                $13::text[], $14::integer[], $15::bigint[], $16::text[])
         WITH ORDINALITY AS u(k, g, c, s, t, m, name, node, d, meta, w, priority, ticket, holds, n)
), cur AS (
  SELECT want.*, l.client_id, l.client_id = want.own AS fresh, o.ttl_ms / 1000.0 AS lasts, {standing}, {behind} AS behind
    FROM want
    JOIN int_lock l ON l.lock_key = want.lock_key AND l.region = want.region
    LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
), fit AS (
  SELECT cur.*, (fresh OR CASE WHEN grouped THEN NOT lives ELSE expired END) AND NOT behind AS free,
         grouped AND lives AND NOT refuses AND NOT behind AS joins
    FROM cur
), verdict AS (
  SELECT COALESCE(bool_and(free OR joins), FALSE) AND count(*) = (SELECT count(*) FROM want) AS ok FROM fit
), taken AS MATERIALIZED (
  SELECT fit.n, fit.lock_key, fit.region, fit.term, fit.mode, fit.mode <> 'exclusive' AS shares, fit.name, fit.node, fit.descriptor, fit.metadata,
         CASE WHEN joins THEN client_id ELSE own END AS client_id, (fit.ttl * 1000)::bigint AS ttl_ms,
         CASE WHEN joins THEN GREATEST(fit.ttl, fit.lasts) ELSE fit.ttl END AS ttl, nextval('obs_fence') AS fence
    FROM fit, verdict
   WHERE verdict.ok
), touched AS (
  UPDATE int_lock l
     SET client_id = want.client_id, {touch want.ttl}
    FROM taken want
   WHERE l.lock_key = want.lock_key AND l.region = want.region
), noted AS (
  INSERT INTO obs_lock AS o (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, boot_term, liveness, metadata, group_term)
  SELECT lock_key, region, client_id, fence, name, CASE WHEN shares THEN '' ELSE node END, CASE WHEN shares THEN '' ELSE descriptor END,
         (ttl * 1000)::bigint, clock_timestamp(), CASE WHEN shares THEN '' ELSE $11 END, client_id, CASE WHEN shares THEN '' ELSE $12 END,
         CASE WHEN shares THEN '' ELSE metadata END, CASE WHEN shares THEN client_id ELSE '' END
    FROM taken
  ON CONFLICT (lock_key, region) DO UPDATE
     SET term = excluded.term, fence = excluded.fence, name = excluded.name, node = excluded.node,
         descriptor = excluded.descriptor, ttl_ms = excluded.ttl_ms, acquired_at = excluded.acquired_at,
         boot_id = excluded.boot_id, boot_term = excluded.boot_term, liveness = excluded.liveness,
         metadata = excluded.metadata, group_term = excluded.group_term
), ended AS MATERIALIZED (
  SELECT h.lock_key, h.region, h.term
    FROM obs_hold h
    JOIN taken ON h.lock_key = taken.lock_key AND h.region = taken.region
     AND (h.group_term <> taken.client_id OR (NOT {live} AND {conflict}))
), reaped AS (
  DELETE FROM obs_hold h
   USING ended
   WHERE h.lock_key = ended.lock_key AND h.region = ended.region AND h.term = ended.term
), held AS (
  INSERT INTO obs_hold (lock_key, region, term, group_term, mode, fence, name, node, descriptor, metadata, ttl_ms, acquired_at, touched_at)
  SELECT lock_key, region, term, client_id, mode, fence, name, node, descriptor, metadata, ttl_ms, clock_timestamp(), clock_timestamp()
    FROM taken
   WHERE shares
), places AS MATERIALIZED (
  SELECT w.waiter, w.lock_key, w.region
    FROM obs_wait w
   WHERE w.waiter = (SELECT want.waiter FROM want, verdict WHERE verdict.ok AND want.n = 1)
   ORDER BY w.lock_key, w.region
     FOR UPDATE OF w
), come AS (
  DELETE FROM obs_wait w
   USING places
   WHERE w.waiter = places.waiter AND w.lock_key = places.lock_key AND w.region = places.region
), undone AS (
  DELETE FROM int_lock l
   USING fit, verdict
   WHERE NOT verdict.ok AND fit.fresh AND l.lock_key = fit.lock_key AND l.region = fit.region
)
SELECT fit.free OR fit.joins, COALESCE(taken.fence, 0), NOT fit.fresh AND fit.free, fit.fresh OR COALESCE(fit.client_id = o.term, FALSE),
       CASE WHEN o.boot_term = o.term THEN o.liveness END, o.node
  FROM fit
  LEFT JOIN taken ON taken.n = fit.n
  LEFT JOIN obs_lock o ON o.lock_key = fit.lock_key AND o.region = fit.region
 ORDER BY fit.n`)

// claimAndGrant are claimSQL and grantSQL for these grants.
func (e *postgresEngine) claimAndGrant(grants []lock.Grant, by process) []sqldb.Statement {
	claim := []any{texts(grants, keyOf), texts(grants, regionOf), texts(grants, rowTerm), seconds(grants)}
	grant := append(slices.Clone(claim), texts(grants, termOf), texts(grants, modeOf),
		texts(grants, func(g lock.Grant) string { return g.Name }), texts(grants, func(g lock.Grant) string { return g.Node }),
		texts(grants, func(g lock.Grant) string { return g.Descriptor }), texts(grants, func(g lock.Grant) string { return g.Metadata }),
		by.boot, by.liveness, texts(grants, func(g lock.Grant) string { return g.Place.ID }), priorities(grants), tickets(grants), texts(grants, holdsOf))
	return []sqldb.Statement{
		{Text: e.db.SQL(claimSQL), Args: claim},
		{Text: e.db.SQL(grantSQL), Args: grant},
	}
}

// acquireAll takes the locks in one round trip and one transaction.
func (e *postgresEngine) acquireAll(ctx context.Context, grants []lock.Grant, by process) ([]acquired, error) {
	taken := make([]acquired, 0, len(grants))
	refused := -1
	err := e.db.Pipeline(ctx, e.claimAndGrant(grants, by), func(scan func(...any) error) error {
		var a acquired
		var ok bool
		err := scan(append([]any{&ok, &a.fence}, a.before.scan()...)...)
		if !ok && refused < 0 {
			refused = len(taken)
		}
		taken = append(taken, a)
		return err
	})
	switch {
	case lockTimedOut(err):
		return nil, errLocked
	case err != nil:
		return nil, err
	case refused >= 0:
		return nil, refusedError{refused}
	case len(taken) != len(grants):
		return nil, fmt.Errorf("%d of %d locks answered", len(taken), len(grants))
	}
	return taken, nil
}

// renewHoldsSQL is renewSQL for locks that are shared.
const renewHoldsSQL = `
WITH want AS (
  SELECT n, k::char(36) AS lock_key, g::varchar(100) AS region, t::char(36) AS term
    FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS u(k, g, t, n)
), due AS (
  SELECT l.lock_key, l.region, h.term, h.ttl_ms / 1000.0 AS ttl
    FROM int_lock l
    JOIN obs_hold h ON h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id
    JOIN want ON h.lock_key = want.lock_key AND h.region = want.region AND h.term = want.term
   WHERE ` + liveHoldSQL + `
   ORDER BY l.lock_key, l.region, h.term
     FOR UPDATE OF l, h SKIP LOCKED
), touched AS (
  UPDATE int_lock l
     SET {prolong l want.ttl}
    FROM (SELECT lock_key, region, max(ttl) AS ttl FROM due GROUP BY lock_key, region) want
   WHERE l.lock_key = want.lock_key AND l.region = want.region
), renewed AS (
  UPDATE obs_hold h
     SET touched_at = clock_timestamp()
    FROM due
   WHERE h.lock_key = due.lock_key AND h.region = due.region AND h.term = due.term
  RETURNING h.lock_key, h.region, h.term
)
SELECT renewed.term IS NOT NULL, EXISTS (
       SELECT 1
         FROM obs_hold h
         JOIN int_lock l ON l.lock_key = h.lock_key AND l.region = h.region AND l.client_id = h.group_term
        WHERE h.lock_key = want.lock_key AND h.region = want.region AND h.term = want.term AND ` + liveHoldSQL + `)
  FROM want
  LEFT JOIN renewed ON renewed.lock_key = want.lock_key AND renewed.region = want.region AND renewed.term = want.term
 ORDER BY want.n`

func (e *postgresEngine) renewHolds(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
	return e.renewals(ctx, len(grants), e.db.SQL(renewHoldsSQL), texts(grants, keyOf), texts(grants, regionOf), texts(grants, termOf))
}

// releaseHold gives a lock back that is shared; the last of the group deletes its row. The
// error is errLocked when another client has locked the row.
func (e *postgresEngine) releaseHold(ctx context.Context, g lock.Grant) error {
	held := false
	err := e.db.Pipeline(ctx, []sqldb.Statement{
		{Text: e.db.SQL(`SELECT 1 FROM int_lock WHERE lock_key = $1 AND region = $2 FOR UPDATE`), Args: []any{g.Key, g.Region}},
		{Text: e.db.SQL(pinHoldSQL), Args: []any{g.Key, g.Region, g.Term}},
		{Text: e.db.SQL(reapSQL), Args: []any{g.Key, g.Region, g.Term}},
		{Text: e.db.SQL(`
			WITH gone AS (
			  DELETE FROM obs_hold WHERE lock_key = $1 AND region = $2 AND term = $3 RETURNING group_term
			), last AS (
			  DELETE FROM int_lock l USING gone
			   WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = gone.group_term AND ` + vacantSQL + `
			)
			SELECT EXISTS (SELECT 1 FROM int_lock l, gone WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = gone.group_term)`),
			Args: []any{g.Key, g.Region, g.Term}},
	}, func(scan func(...any) error) error { return scan(&held) })
	switch {
	case lockTimedOut(err):
		return errors.Join(errLocked, err)
	case err != nil:
		return err
	case !held:
		return lock.ErrLost
	}
	return nil
}

// texts are one text of each grant.
func texts(grants []lock.Grant, of func(lock.Grant) string) []string {
	all := make([]string, len(grants))
	for i, g := range grants {
		all[i] = of(g)
	}
	return all
}

func keyOf(g lock.Grant) string    { return g.Key }
func regionOf(g lock.Grant) string { return g.Region }
func termOf(g lock.Grant) string   { return g.Term }

func modeOf(g lock.Grant) string {
	if g.Mode.Alone() {
		return string(lock.Exclusive)
	}
	return string(g.Mode)
}

// seconds are the TTLs of the grants.
func seconds(grants []lock.Grant) []float64 {
	all := make([]float64, len(grants))
	for i, g := range grants {
		all[i] = g.TTL.Seconds()
	}
	return all
}
