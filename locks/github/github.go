// Package github opens the issues of a repository on GitHub as a provider of package
// [github.com/observerd/observerd/locks]: workers on different machines take tasks, and people
// see who has which.
package github

import (
	"context"

	"github.com/observerd/observerd/internal/lock/githublock"
	"github.com/observerd/observerd/locks"
)

// Options configure a provider.
type Options = githublock.Options

// Open returns a provider of locks of issues. A lock has one resource, the number of an open
// issue; subject and predicate are free. It connects when a lock is acquired. The error is of the
// options, and repeats no token. Hand the provider to [locks.Open].
func Open(_ context.Context, o Options) (locks.Provider, error) { return githublock.Open(o) }
