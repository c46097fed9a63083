package lockdb

import "time"

// Line returns how many connections to the file write, and how many calls have
// had to wait for one.
func (db *DB) Line() (inUse int, waited int64) {
	s := db.main.Stats()
	return s.InUse, s.WaitCount
}

// OnEncode sets a function that is called for each time that is encoded. Call it
// before anything is.
func (db *DB) OnEncode(f func()) {
	bind := db.d.bindTime
	db.d.bindTime = func(t time.Time) any {
		f()
		return bind(t)
	}
}
