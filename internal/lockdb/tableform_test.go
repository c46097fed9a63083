package lockdb

import (
	"context"
	"testing"
	"testing/synctest"
)

// slowCatalogue answers when it is told to, or not at all.
type slowCatalogue struct {
	engine
	looks  int
	answer chan struct{}
}

func (c *slowCatalogue) recognise(ctx context.Context) error {
	c.looks++
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.answer:
		return nil
	}
}

// TestLookDoesNotEndForThoseWhoWaitForIt has whoever looks at the catalogue go
// away, as a client of the status page does. Who waits for the same look, to
// take a lock, must not take that for a database that fails.
func TestLookDoesNotEndForThoseWhoWaitForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &slowCatalogue{answer: make(chan struct{})}
		db := &DB{engine: c}
		gone, leave := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- db.recognise(gone) }()
		synctest.Wait()
		go func() { second <- db.recognise(t.Context()) }()
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
