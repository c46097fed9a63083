package postgres

import (
	"context"
	"fmt"
)

// identitySQL names the cluster, its timeline and the database. A restored
// cluster keeps its identifier and takes a new timeline. So does a replica that
// was promoted: what the old primary had not yet sent it is lost there too.
const identitySQL = `
SELECT s.system_identifier::text || '/' || c.timeline_id || '/' || d.oid
  FROM pg_control_system() s, pg_control_checkpoint() c, pg_database d
 WHERE d.datname = current_database()`

// Identity implements [observer.Source]. Where the role may not look at the
// control file, it cannot tell.
func (s *Source) Identity(ctx context.Context) (string, error) {
	rows, err := inSession(ctx, s, func(c *session) ([][][]byte, error) {
		return c.answer(ctx, "read the identity", question{sql: identitySQL, fixed: true})
	})
	switch {
	case hasState(err, missingRight):
		return "", nil
	case err != nil || len(rows) != 1:
		return "", err
	}
	return fmt.Sprintf("system:%s", rows[0][0]), nil
}
