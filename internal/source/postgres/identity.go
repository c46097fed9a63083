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
	var identity string
	err := s.session(ctx, func(ctx context.Context, c *session) error {
		rows, err := c.rows(ctx, "read the identity", identitySQL)
		if forbidden(err) {
			return nil
		}
		if err == nil && len(rows) == 1 {
			identity = fmt.Sprintf("system:%s", rows[0][0])
		}
		return err
	})
	return identity, err
}
