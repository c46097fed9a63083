package lockdb

import "time"

// OnEncode sets a function that is called for each time that is encoded. Call it
// before anything is.
func (db *DB) OnEncode(f func()) {
	bind := db.d.bindTime
	db.d.bindTime = func(t time.Time) any {
		f()
		return bind(t)
	}
}
