package mysql

import "context"

// enginesSQL names the engines whose open transactions innodb_trx does not show, or
// that show tables of other servers: all but those whose rows are there at the end
// of a statement.
const enginesSQL = `
SELECT engine
FROM information_schema.engines
WHERE support IN ('YES', 'DEFAULT') AND LOWER(engine) NOT IN ('innodb', 'myisam', 'aria', 'memory', 'csv', 'archive',
  'mrg_myisam', 'blackhole', 'sequence', 'performance_schema')
ORDER BY engine`

// foreignEngine names one of these engines that the server has, or is empty. The
// catalogue does not say which engines the tables behind a view or a query have.
func (c *session) foreignEngine(ctx context.Context) (string, error) {
	rows, err := c.rows(ctx, "read the engines", enginesSQL)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return string(rows[0][0]), nil
}
