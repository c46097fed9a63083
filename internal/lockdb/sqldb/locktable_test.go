package sqldb

import (
	"context"
	"testing"
	"testing/synctest"
)

// slowCatalogue answers when it is told to, or not at all.
type slowCatalogue struct {
	looks  int
	answer chan struct{}
}

func (c *slowCatalogue) read(ctx context.Context) (lockTable, error) {
	c.looks++
	select {
	case <-ctx.Done():
		return lockTable{}, context.Cause(ctx)
	case <-c.answer:
		return inOrder, nil
	}
}

// inOrder is Spring's own table.
var inOrder = lockTable{
	Name: "public.int_lock", Kind: "r", Unique: [][]string{{"lock_key", "region"}},
	Columns: []lockColumn{
		{Name: "lock_key", Type: "character", Size: 36},
		{Name: "region", Type: "character varying", Size: 100},
		{Name: "client_id", Type: "character", Size: 36, Nullable: true},
		{Name: "created_date", Type: "timestamp without time zone", Size: -1},
	},
}

// TestLookDoesNotEndForThoseWhoWaitForIt cancels the reader of the
// catalogue, as a client of the status page does. A node that waits for the same read,
// to take a lock, must not take that for a failure of the database.
func TestLookDoesNotEndForThoseWhoWaitForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &slowCatalogue{answer: make(chan struct{})}
		db := &DB{readLockTable: c.read, renderings: newRenderings(postgresDialect())}
		gone, leave := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- db.Recognise(gone) }()
		synctest.Wait()
		go func() { second <- db.Recognise(t.Context()) }()
		synctest.Wait()
		leave()
		synctest.Wait()
		close(c.answer)
		if err := <-first; err == nil {
			t.Error("the look of a client that went away went well")
		}
		if err := <-second; err != nil || c.looks != 2 {
			t.Errorf("%v after %d looks, want none after 2", err, c.looks)
		}
	})
}
