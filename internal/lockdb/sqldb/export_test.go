package sqldb

// TableSQL are the statements on INT_LOCK and the place of the tables, of PostgreSQL alone.
type TableSQL struct{ Catalogue, Strangers, Pathless, Owner, Find string }

var PostgresTableSQL = TableSQL{catalogueSQL, strangersSQL, pathlessSQL, ownerSQL, findSQL}
