package relay_test

import "testing"

// TestRelayIsWokenWhenTheLeaseWasFreed covers a leader that died: nobody waits
// for the next attempt.
func TestRelayIsWokenWhenTheLeaseWasFreed(t *testing.T) {
	bubble(t, func(r *rig) {
		freed := make(chan struct{})
		r.opts.Freed = func() <-chan struct{} { return freed }
		r.lock.expire(true) // Another leads.
		r.log.add("orders", 1)
		r.start()
		pass(0)
		tried := r.lock.tries()
		r.lock.expire(false)
		leader := freed
		freed = nil
		close(leader)
		pass(0)
		r.wantStored("orders", upTo(1))
		if n := r.lock.tries() - tried; n != 1 {
			t.Errorf("%d attempts to lead, want one", n)
		}
	})
}
