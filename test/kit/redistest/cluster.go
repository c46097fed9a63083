package redistest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

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
		err := testbed.Until(t.Context(), time.Minute, func() error { return s.says(t.Context(), "CLUSTER INFO", "cluster_state:ok") })
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
	if err := testbed.Until(t.Context(), time.Minute, func() error { return s.says(t.Context(), "INFO replication", "master_link_status:up") }); err != nil {
		t.Fatal(err)
	}
	return s
}

// says returns an error unless the answer, of several lines, has the word.
func (s *Server) says(ctx context.Context, command, word string) error {
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
