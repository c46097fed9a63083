//go:build nightly

package kubernetes_test

import (
	"testing"

	"github.com/observerd/observerd/test/kit/kubeapitest"
)

// TestManifestOnKubernetes applies the manifest to a real API server, which refuses unknown fields.
func TestManifestOnKubernetes(t *testing.T) {
	t.Parallel()
	kubeapitest.Start(t).Apply(t, manifest)
}
