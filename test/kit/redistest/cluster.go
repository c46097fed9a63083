package redistest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/testbed"
)

// slots is how many a cluster has.
const slots = 16384

// busBelow is how far below its port a node of a cluster listens for others. By itself that
// is one from which kernels serve outgoing connections.
const busBelow = 13000

// Cluster gives a test a cluster of so many masters.
func Cluster(t testing.TB, masters int) []*Server {
	t.Helper()
	all := make([]*Server, masters)
	for i := range all {
		all[i] = Start(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "5000")
		all[i].Must(t, fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", i*slots/masters, (i+1)*slots/masters-1))
		all[i].Must(t, fmt.Sprintf("CLUSTER SET-CONFIG-EPOCH %d", i+1))
		if i > 0 {
			all[i].Must(t, fmt.Sprintf("CLUSTER MEET 127.0.0.1 %d %d", all[0].Port, all[0].Port-busBelow))
		}
	}
	for _, s := range all {
		err := testbed.Until(t.Context(), time.Minute, func() error { return s.Says(t.Context(), "CLUSTER INFO", "cluster_state:ok") })
		if err != nil {
			t.Fatalf("a cluster of %d: %v", masters, err)
		}
	}
	return all
}

// Replica gives a test a replica of the server that has caught up with it.
func Replica(t testing.TB, of *Server) *Server {
	t.Helper()
	s := Start(t, "--replicaof", "127.0.0.1", fmt.Sprint(of.Port))
	if err := testbed.Until(t.Context(), time.Minute, func() error { return s.Says(t.Context(), "INFO replication", "master_link_status:up") }); err != nil {
		t.Fatal(err)
	}
	return s
}

// Says returns an error unless the answer, of several lines, has the word.
func (s *Server) Says(ctx context.Context, command, word string) error {
	conn, err := s.send(ctx, command)
	if err != nil {
		return err
	}
	defer conn.Close()
	answer := make([]byte, 4096)
	n, err := conn.Read(answer)
	if err != nil || !strings.Contains(string(answer[:n]), word) {
		return fmt.Errorf("%s: %q %w", command, answer[:n], err)
	}
	return nil
}

// Master is the name by which sentinels know their server.
const Master = "observed"

// Sentinels gives a test three sentinels of the master, which promote its replica two seconds
// after it is gone.
func Sentinels(t testing.TB, master, replica *Server) []*Server {
	t.Helper()
	config := fmt.Sprintf("sentinel monitor %[1]s 127.0.0.1 %[2]d 2\nsentinel down-after-milliseconds %[1]s 1000\nsentinel failover-timeout %[1]s 3000\n", Master, master.Port)
	all := make([]*Server, 3)
	for i := range all {
		all[i] = servertest.Give(t, kind.Name, servertest.InstallTimeout+startTimeout, func(ctx context.Context) (*Server, error) {
			return open(ctx, config, "--sentinel")
		})
	}
	for _, s := range all {
		err := testbed.Until(t.Context(), time.Minute, func() error {
			return errors.Join(s.Says(t.Context(), "SENTINEL REPLICAS "+Master, strconv.Itoa(replica.Port)), s.Says(t.Context(), "INFO sentinel", "slaves=1,sentinels=3"))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}
