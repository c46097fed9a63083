// Package kind is what kinds of sinks and of lock providers are made of: their name,
// their settings, and what they are asked before they are opened.
package kind

import (
	"context"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/fn"
)

// Kind is one kind of a family, such as the sinks. S are the settings of the family: they
// say how one is opened.
type Kind[S Settings] struct {
	// Name is the type of such a section in the configuration.
	Name string
	// Settings returns settings without values.
	Settings func() S
}

// Settings are the keys that sections of one kind have beside those of the family: a
// pointer to a struct whose fields have the tags that package config describes.
type Settings interface {
	// Target names the place that no two sections of the family may share, and the key
	// that says so; "" for none.
	Target() (key, place string)
	// Check reports what is wrong and can be told without a connection. It is not called
	// while a value is none that the tags allow.
	Check(r field.Report)
	// Probe asks what the settings lead to whether it can be used. It writes nothing.
	Probe(ctx context.Context) []Finding
}

// Finding is what a [Settings.Probe] has found.
type Finding struct {
	// Warning says that it works, but worse than it could.
	Warning bool
	// Err says what is wrong and what to do, without secrets and values of rows.
	Err error
}

// Any returns the kinds of a family for those who see no more than settings.
func Any[S Settings](family []Kind[S]) []Kind[Settings] {
	return fn.Each(family, func(k Kind[S]) Kind[Settings] {
		return Kind[Settings]{Name: k.Name, Settings: func() Settings { return k.Settings() }}
	})
}
