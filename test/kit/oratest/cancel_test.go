//go:build !race

// The driver's own break writes what its reader reads, without a lock.

package oratest_test

import (
	"context"
	"testing"

	"github.com/observerd/observerd/test/kit/oratest"
)

func TestCancel(t *testing.T) {
	s := counting(t)
	db := open(t, s)
	trap := s.On(oratest.SQL("FROM t"), oratest.Fault{Times: 1, Hang: true})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-trap.Reached()
		cancel()
	}()
	var id string
	wantCode(t, db.QueryRowContext(ctx, "SELECT id FROM t").Scan(&id), 1013)
	if got := mustAll(t, db, "SELECT id FROM t"); len(got) != 60 || s.Logons() != 1 || s.Breaks() != 1 {
		t.Errorf("%d rows, %d logons, %d breaks; want the same connection after one break", len(got), s.Logons(), s.Breaks())
	}
}
