package lockdb

import "context"

// LookAgain looks at the catalogue now, as the next acquisition would after a time.
func (db *DB) LookAgain(ctx context.Context) error { return db.db.Recognise(ctx) }
