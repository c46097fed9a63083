// Package lockkind is what kinds of lock providers are made of that the configuration
// opens: the family of [kind.Kind] below locks.providers.
package lockkind

import (
	"log/slog"

	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/lock"
)

// Kind is one kind of lock provider.
type Kind = kind.Kind[Settings]

// Settings are the keys of a provider beside those of the family.
type Settings interface {
	kind.Settings
	// For returns the settings of a provider that keeps locks of that region: Probe asks
	// whether it can.
	For(region string) Settings
	// Capabilities are those of the provider that Open returns, for people: nobody is asked,
	// and the interfaces in them are not called.
	Capabilities() lock.Capabilities
	// Open returns the provider. It connects when it is used. The error is of the settings,
	// or of files that they name.
	Open(o Options) (lock.Provider, error)
}

// Options are what a provider gets beside its settings.
type Options struct {
	// Logger receives what a person should know. Required.
	Logger *slog.Logger
}
