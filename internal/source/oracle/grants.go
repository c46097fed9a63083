package oracle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/source/oracle/client"
)

// grants is what this account may look at besides its tables.
type grants struct {
	// view shows the open transactions of the whole database: GV$TRANSACTION,
	// or V$TRANSACTION where there is no more than one instance. Empty for none.
	view string
	// instances says that V$TRANSACTION is granted, but that the database may
	// have instances whose transactions it does not show.
	instances bool
	// blind says that the view is granted, but did not show a transaction of
	// our own.
	blind bool
	identification
	checked time.Time
}

// recheck is after how long grants are looked at again: a new one shall be
// noticed without a restart. One that was revoked is noticed at once.
const recheck = 10 * time.Minute

// granted finds out by trying: what the catalogue says of grants needs grants of
// its own.
func (s *Source) granted(ctx context.Context) (grants, error) {
	if known := s.grants.Load(); known != nil && time.Since(known.checked) < recheck {
		return *known, nil
	}
	g, err := inSession(ctx, s, func(c *session) (grants, error) { return c.grants(ctx) })
	if err == nil && g.view != "" {
		// In a session of its own, which may be of no more use after it.
		g.blind, err = inSession(ctx, s, func(c *session) (bool, error) { return c.blind(ctx, g.view) })
	}
	if err == nil {
		s.grants.Store(&g)
	}
	return g, err
}

func (c *session) grants(ctx context.Context) (grants, error) {
	g := grants{checked: time.Now()}
	var err error
	if g.identification, err = c.identification(ctx); err != nil {
		return g, err
	}
	return g, c.transactionView(ctx, &g)
}

func (c *session) granted(ctx context.Context, view string) (bool, error) {
	_, err := c.rows(ctx, "look for grants", "SELECT COUNT(*) FROM "+view)
	if ungranted(err) {
		return false, nil
	}
	return err == nil, err
}

// transactionView prefers the view of all instances. The one of a single
// instance is as good only where there are no others, which V$INSTANCE says.
func (c *session) transactionView(ctx context.Context, g *grants) error {
	ok, err := c.granted(ctx, "GV$TRANSACTION")
	if ok {
		g.view = "GV$TRANSACTION"
	}
	if ok || err != nil {
		return err
	}
	if ok, err = c.granted(ctx, "V$TRANSACTION"); !ok {
		return err
	}
	rows, err := c.rows(ctx, "look for other instances", "SELECT i.PARALLEL FROM V$INSTANCE i")
	if err != nil && !ungranted(err) {
		return err
	}
	if err == nil && len(rows) == 1 && rows[0][0] == "NO" {
		g.view = "V$TRANSACTION"
		return nil
	}
	g.instances = true
	return nil
}

// ownSQL starts a transaction without a change in it, which takes no right to
// write, looks for it, and ends it. That it was not shown is told by the error
// of a division by zero: a block has no other answer that every driver reads.
const ownSQL = `DECLARE
  own VARCHAR2(200);
  shown NUMBER;
BEGIN
  own := DBMS_TRANSACTION.LOCAL_TRANSACTION_ID(TRUE);
  SELECT COUNT(*) INTO shown FROM %s t WHERE t.XIDUSN || '.' || t.XIDSLOT || '.' || t.XIDSQN = own;
  ROLLBACK;
  shown := 1 / shown;
END;`

// blind tests the view with a transaction of our own. A grant that answers is
// believed where that cannot be done, as on a hardened database.
func (c *session) blind(ctx context.Context, view string) (bool, error) {
	err := c.exec(ctx, "test the view of transactions", fmt.Sprintf(ownSQL, view))
	refusal, ok := errors.AsType[*client.Error](err)
	switch {
	case err == nil:
		return false, nil
	case !ok:
		return false, err
	case refusal.Spoils(): // The transaction ends with the session.
		return false, nil
	}
	return refusal.Code == codeDivision, c.exec(ctx, "end the test of the view", "ROLLBACK")
}

// warnings says what is lost without a grant, and how to give it.
func (g grants) warnings() []string {
	var w []string
	switch {
	case g.instances:
		w = append(w, "V$TRANSACTION shows the transactions of one instance, and the database may have more: the horizon is the clock less the overlap. GRANT SELECT ON SYS.GV_$TRANSACTION, or on SYS.V_$INSTANCE where there is only one, to the account that reads.")
	case g.view == "":
		w = append(w, "The open transactions are hidden, so the horizon is the clock less the overlap, and a row that is committed later than that is never seen. GRANT SELECT ON SYS.GV_$TRANSACTION to the account that reads.")
	case g.blind:
		w = append(w, g.view+" is granted, but does not show a transaction of this very session: the horizon is the clock less the overlap.")
	}
	if g.from == "" {
		w = append(w, "Without V$DATABASE the database is known by its name alone, and a restored one is taken for the one before. GRANT SELECT ON SYS.V_$DATABASE to the account that reads.")
	}
	return w
}
