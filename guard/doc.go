// Package guard lets a consumer process each event once, however often its bus delivers it.
//
//	g, err := guard.New(ctx, guard.Options{Locks: manager, DB: db, Consumer: "payments"})
//	…
//	outcome, err := g.Do(ctx, "4711", event.ID, func(ctx context.Context, tx guard.Tx) error {
//		_, err := tx.SQL.ExecContext(ctx, "UPDATE orders SET paid = true WHERE id = $1", "4711")
//		return err
//	})
//
// What the handler writes in its transaction is committed once for each event, whatever the
// lock store does: the same transaction inserts the event's id under a unique constraint. The
// lock keeps two handlers of one key from running at the same time.
//
// A call to another system inside the handler may be made twice, as when the process dies
// before its commit. [IdempotencyKey] is the same in every attempt; give it to that system.
package guard
