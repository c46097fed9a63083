// Package kubernetes opens Leases of Kubernetes as a provider of package
// [github.com/observerd/observerd/locks]: pods exclude each other without another server.
package kubernetes

import (
	"context"

	"github.com/observerd/observerd/internal/lock/kubelease"
	"github.com/observerd/observerd/locks"
)

// Options configure a provider.
type Options = kubelease.Options

// The ways in which Leases are named; see [Options].
const (
	Hashed = kubelease.Hashed
	Plain  = kubelease.Plain
	SHA256 = kubelease.SHA256
)

// Open returns a provider of locks in Leases. It connects when a lock is acquired. The error is
// of the options, of the kubeconfig, or of a service account that is not there; it repeats no
// token. Hand the provider to [locks.Open].
func Open(_ context.Context, o Options) (locks.Provider, error) { return kubelease.Open(o) }
