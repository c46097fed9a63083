package lockdb

import "time"

// AgeEnds makes it a minute ago that the ends of streams were compared.
func (db *DB) AgeEnds() {
	db.ends.mu.Lock()
	defer db.ends.mu.Unlock()
	db.ends.examined = time.Now().Add(-examineEvery)
}
