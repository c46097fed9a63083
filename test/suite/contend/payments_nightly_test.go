//go:build nightly

package contend_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/kafkatest"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/redistest"
	"github.com/observerd/observerd/test/kit/testbed"
)

// TestFailuresOnKafka is [TestFailuresOfConsumers] with a real broker.
func TestFailuresOnKafka(t *testing.T) {
	t.Parallel()
	fail(t, func(t *testing.T) string { return kafkatest.Start(t).Address() })
}

// TestOrdersUnderAllFaults delivers 100,000 orders three times, on partitions side by side, while
// consumers, Kafka, Redis and the network before the database fail, one after the other, and one
// COMMIT of a hundred is not answered, or arrives later than that.
func TestOrdersUnderAllFaults(t *testing.T) {
	const orders, times, partitions = 100_000, 3, 12
	broker := kafkatest.Start(t)
	s := openShop(t, buildPayments(t), broker.Address())
	var network *netfault.Proxy
	s.database, network = netfault.StartBefore(t, s.database)
	network.Inspect(func(request []byte) netfault.Fault {
		if !bytes.Contains(request, []byte("commit\x00")) {
			return netfault.Fault{}
		}
		switch rand.IntN(200) {
		case 0:
			return netfault.Fault{LoseAnswer: true}
		case 1:
			return netfault.Fault{Late: rand.N(3 * time.Second)}
		}
		return netfault.Fault{}
	})
	s.topic(t, "orders", partitions)
	s.order(t, "orders", partitions, orders, times, true)
	names := []string{"a", "b", "c"}
	c := s.consumers(t, "orders", names...)
	someone := func() string { return names[rand.IntN(len(names))] }
	replica := redistest.Replica(t, s.redis)
	faults := []func(){
		func() {
			victim := someone()
			c.end(victim, syscall.SIGKILL)
			c.launch(victim)
		},
		func() {
			wake := c.suspend(someone()) // Some sleep longer than Kafka waits for them.
			time.Sleep(consumerLease + rand.N(3*time.Second))
			wake()
		},
		func() {
			c.launch("d")
			time.Sleep(rand.N(3 * time.Second))
			c.end("d", syscall.SIGTERM)
		},
		func() {
			s.redis.Kill(t)
			time.Sleep(rand.N(3 * time.Second))
			restart(t, s.redis)
		},
		func() { s.redis.Must(t, "FLUSHALL") }, // As when its clock jumps: all leases have ended.
		func() { lags(t, s.redis, replica) },
		func() { network.Reset() },
		func() {
			network.SetImpairment(netfault.BlackHole())
			time.Sleep(rand.N(3 * time.Second))
			network.SetImpairment(netfault.Impairment{})
		},
		func() {
			broker.Kill(t)
			if err := broker.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
	}
	count, order := 0, rand.Perm(len(faults))
	for end := time.Now().Add(50 * time.Minute); s.consumed(t, "orders", 2*time.Second+rand.N(6*time.Second)) != nil && time.Now().Before(end); {
		faults[order[count%len(faults)]]()
		count++
	}
	s.paid(t, "orders", orders, time.Minute)
	if count < len(faults) {
		t.Errorf("%d faults, too few to have all", count)
	}
	t.Logf("%d faults, before the database %+v", count, network.Stats())
}

func restart(t *testing.T, s *redistest.Server) {
	t.Helper()
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// lags has Redis fail, and its replica promoted that has not heard of it for a while, at the
// address of the old one.
func lags(t *testing.T, s, replica *redistest.Server) {
	t.Helper()
	replica.Must(t, "REPLICAOF 127.0.0.1 1")
	time.Sleep(rand.N(2 * time.Second))
	s.Kill(t)
	replica.Must(t, "REPLICAOF NO ONE")
	restart(t, s)
	follows(t, s, replica)
	s.Must(t, "REPLICAOF NO ONE")
	follows(t, replica, s)
}

func follows(t *testing.T, s, master *redistest.Server) {
	t.Helper()
	s.Must(t, fmt.Sprintf("REPLICAOF 127.0.0.1 %d", master.Port))
	if err := testbed.Until(t.Context(), time.Minute, func() error { return s.Says(t.Context(), "INFO replication", "master_link_status:up") }); err != nil {
		t.Fatal(err)
	}
}
