package lockdb

// LookAgain forgets when the catalogue was last looked at, as time does.
func (db *DB) LookAgain() { db.table.looked.Store(0) }
