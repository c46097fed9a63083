package database

import "github.com/observerd/observerd/internal/lockdb"

var sqliteStatements = statements{
	Standing: `
SELECT l.client_id, ` + standing + `,
         ` + behind + ` AS behind, ` + released + `, COALESCE(o.node, '')
  FROM ` + wanted + `
  LEFT JOIN int_lock l ON l.lock_key = want.lock_key AND l.region = want.region
  LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id`,

	TakeRow: `
INSERT INTO int_lock AS l (lock_key, region, client_id, {cols})
VALUES ($1, $2, $3, {vals $4})
ON CONFLICT (lock_key, region) DO UPDATE
   SET client_id = excluded.client_id, {touch $4}`,

	ReapGroup: `
DELETE FROM obs_hold AS h
 WHERE lock_key = $1 AND region = $2 AND (group_term <> $3 OR NOT {live h})`,

	DescribeAlone: `
INSERT INTO obs_lock (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, liveness, metadata)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, {now}, '', '', $9)
` + lockdb.Described,

	DescribeGroup: `
INSERT INTO obs_lock AS o (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, liveness, metadata, group_term)
VALUES ($1, $2, $3, $4, $5, '', '', $6, {now}, '', '', '', $3)
ON CONFLICT (lock_key, region) DO UPDATE
   SET ttl_ms = CASE WHEN o.term = excluded.term THEN max(o.ttl_ms, excluded.ttl_ms) ELSE excluded.ttl_ms END,
       term = excluded.term, fence = excluded.fence, name = excluded.name, node = '', descriptor = '', acquired_at = excluded.acquired_at,
       boot_id = '', liveness = '', metadata = '', group_term = excluded.group_term`,

	AddHold: `
INSERT INTO obs_hold (lock_key, region, term, group_term, mode, fence, name, node, descriptor, metadata, ttl_ms, acquired_at, touched_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, {now}, {now})`,

	Prolong: `
UPDATE int_lock SET created_date = {utc} WHERE lock_key = $1 AND region = $2`,

	Shares: `
SELECT EXISTS (SELECT 1
                 FROM int_lock l
                 JOIN obs_hold h ON h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id
                WHERE l.lock_key = $1 AND l.region = $2 AND h.term = $3)`,

	NoteOne: `
INSERT INTO obs_wait (waiter, lock_key, region, mode, priority, ticket, node, touched_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, {now})
ON CONFLICT (waiter, lock_key, region) DO UPDATE
   SET touched_at = excluded.touched_at`,

	Wait: `
SELECT ` + come + `
  FROM ` + wanted,

	Come: `
DELETE FROM obs_wait WHERE waiter = $1`,

	Group: groupSQL, GuardHold: guardHoldSQL, LockRow: lockRowSQL, Reap: reapSQL,
	EndAlone: endAloneSQL, EndGroup: endGroupSQL, EndHold: endHoldSQL,
	Extend: extendSQL, ExtendRow: extendRowSQL, ExtendGroup: extendGroupSQL, ExtendHold: extendHoldSQL,
	Delay: delaySQL, DelayLock: delayLockSQL, DelayGroup: delayGroupSQL, DelayHold: delayHoldSQL,
	RedateHolds: redateHoldsSQL, LeaveLine: leaveLineSQL, Ahead: aheadSQL,
	SeenAlone: seenAloneSQL, SeenHold: seenHoldSQL, Refusing: refusingSQL,
	Find: findSQL, NoteFailures: noteFailuresSQL, KindStats: kindStatsSQL, FailedLocks: failedLocksSQL,
}
