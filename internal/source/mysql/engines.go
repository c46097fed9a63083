package mysql

import (
	"context"
	"slices"
	"strings"
)

// enginesSQL names the engines that keep transactions, or tables of other servers
// in which others keep them.
const enginesSQL = `
SELECT engine
FROM information_schema.engines
WHERE support IN ('YES', 'DEFAULT') AND (transactions = 'YES' OR engine IN ('FEDERATED', 'CONNECT'))
ORDER BY engine`

// foreign reports whether an engine has transactions, but none that innodb_trx
// shows, or is one that the catalogue does not know. What the older engines write
// is there at the end of a statement.
func foreign(engine string) bool {
	return !slices.Contains([]string{"innodb", "myisam", "aria", "memory", "csv", "archive", "mrg_myisam"}, strings.ToLower(engine))
}

// foreignEngine names an engine of the server that is foreign, or is empty. Which
// engines the tables of a view or a query have is not known, only which they may
// have.
func (c activityReader) foreignEngine(ctx context.Context) (string, error) {
	rows, err := c.rows(ctx, "read the engines", enginesSQL)
	if err != nil {
		return "", err
	}
	return firstForeign(rows), nil
}

// firstForeign leaves out MariaDB's SEQUENCE, whose tables cannot be written.
func firstForeign(rows [][][]byte) string {
	for _, row := range rows {
		if name := string(row[0]); foreign(name) && !strings.EqualFold(name, "SEQUENCE") {
			return name
		}
	}
	return ""
}

// of is the activity as far as it concerns what is read.
func (a activity) of(r relation) activity {
	if r.base {
		a.foreign, a.engine = foreign(r.engine), ""
	}
	return a
}
