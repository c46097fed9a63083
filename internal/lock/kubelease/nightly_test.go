//go:build nightly

package kubelease_test

import (
	"testing"

	"github.com/observerd/observerd/test/kit/kubeapitest"
)

// TestOnKubernetes is [TestContract] and [TestStories] on a real API server. It keeps the
// endpoint of package kubetest honest.
func TestOnKubernetes(t *testing.T) {
	t.Parallel()
	s := kubeapitest.Start(t)
	t.Run("contract", func(t *testing.T) { contract(t, s) })
	for name, story := range stories() {
		t.Run(name, func(t *testing.T) { story(t, s) })
	}
}
