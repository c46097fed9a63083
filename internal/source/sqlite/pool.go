package sqlite

import (
	"context"
	"database/sql"
	"os"
	"sync"
	"time"
)

// pool has the connections to the file that is at a path. Those to one that was there before
// are not used for a further statement: nobody else sees what they read, and [Source.Identity]
// is that of the other.
type pool struct {
	path, dsn string
	size      int

	mu   sync.Mutex
	db   *sql.DB
	file os.FileInfo // nil for none
}

// on returns the connections to the file that is at the path now, or to one that comes there.
func (p *pool) on() *sql.DB {
	p.mu.Lock()
	defer p.mu.Unlock()
	file, err := os.Stat(p.path)
	if err != nil {
		file = nil // Whoever opens it is told why.
	}
	if p.db != nil && (os.SameFile(p.file, file) || p.file == nil && file == nil) {
		return p.db
	}
	if p.db != nil {
		_ = p.db.Close() // Reads that have begun end on the former file.
	}
	db, err := sql.Open("sqlite", p.dsn)
	if err != nil {
		panic(err) // The driver is there, and opens nothing yet.
	}
	db.SetMaxOpenConns(p.size)
	db.SetMaxIdleConns(maxIdle)
	db.SetConnMaxIdleTime(time.Minute)
	p.db, p.file = db, file
	return db
}

// QueryContext implements [source.Querier].
func (p *pool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return p.on().QueryContext(ctx, query, args...)
}

func (p *pool) conn(ctx context.Context) (*sql.Conn, error) { return p.on().Conn(ctx) }

func (p *pool) close() error { return p.on().Close() }
