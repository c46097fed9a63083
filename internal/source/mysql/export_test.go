package mysql

import "context"

// BeganSQL converts a literal as the horizon does the beginning of a transaction.
func BeganSQL(literal string) string {
	return "SELECT " + beganUTC + " FROM (SELECT TIMESTAMP(" + literal + ") AS trx_started) t"
}

// Indexes looks at the indexes of a table.
func (s *Source) Indexes(ctx context.Context, schema, table string) error {
	_, err := inSession(ctx, s, func(c *session) ([]index, error) {
		return c.indexes(ctx, relation{base: true, schema: schema, table: table})
	})
	return err
}
