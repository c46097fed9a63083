package redistest_test

import (
	"testing"

	"github.com/observerd/observerd/test/kit/redistest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(redistest.Wrap(m)) }

func ask(t *testing.T, s *redistest.Server, command, want string) {
	t.Helper()
	if got, err := s.Ask(t.Context(), command); err != nil || got != want {
		t.Errorf("%s: %q, %v, want %q", command, got, err, want)
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Must(t, "SET a 1")
	replica := redistest.Replica(t, s)
	ask(t, replica, "EXISTS a", ":1")
	ask(t, replica, "SET a 2", "-READONLY You can't write against a read only replica.")
	resume := s.Pause(t)
	resume()
	s.Kill(t)
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask(t, s, "EXISTS a", ":0")
}

func TestCluster(t *testing.T) {
	t.Parallel()
	all := redistest.Cluster(t, 3)
	ask(t, all[0], "CLUSTER KEYSLOT a", ":15495")
	ask(t, all[2], "SET a 1", "+OK")
}
