//go:build nightly

package kubeapitest

import (
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(m) }

func TestServer(t *testing.T) {
	t.Parallel()
	s := Start(t)
	opens(t, s, "a")
	namespace := s.Namespace(t)
	leases := s.url("/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases")
	wants := func(answer, method, path, body string) {
		t.Helper()
		err := s.do(t.Context(), "a", method, leases+path, body, nil)
		if answer == "" && err != nil || answer != "" && (err == nil || !strings.Contains(err.Error(), answer)) {
			t.Fatalf("%s: %v, want %q", method, err, answer)
		}
	}
	first := `{"metadata":{"name":"first"}}`
	wants("403 Forbidden", http.MethodPost, "", first)
	s.Grant(t, namespace, "a", "create", "get")
	wants("", http.MethodPost, "", first)
	wants(`"reason":"AlreadyExists"`, http.MethodPost, "", first)

	s.Pause(t)()
	s.Kill(t)
	must(t, s.Restart(t.Context()))
	wants("", http.MethodGet, "/first", "")

	restore := s.Snapshot(t)
	wants("", http.MethodPost, "", strings.ReplaceAll(first, "first", "second"))
	restore()
	wants("", http.MethodGet, "/first", "")
	wants("404 Not Found", http.MethodGet, "/second", "")

	manifest := filepath.Join(t.TempDir(), "all.yaml")
	must(t, os.WriteFile(manifest, []byte("# Nothing.\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: some}\ndata: {a: b}\n"), 0o600))
	s.Apply(t, manifest)
}

// opens fails the test unless a kubeconfig has what the server's own client goes by.
func opens(t *testing.T, s *Server, user string) {
	t.Helper()
	text, err := os.ReadFile(s.Kubeconfig(t, user))
	must(t, err)
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string
				CA     []byte `json:"certificate-authority-data"`
			}
		}
		Users []struct{ User struct{ Token string } }
	}
	must(t, json.Unmarshal(text, &config))
	cluster, trusted := config.Clusters[0].Cluster, x509.NewCertPool()
	trusted.AppendCertsFromPEM(cluster.CA)
	if !trusted.Equal(s.trusted) || cluster.Server != s.url("") || config.Users[0].User.Token != s.tokens[user] {
		t.Errorf("the kubeconfig is %s", text)
	}
}
