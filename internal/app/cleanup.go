package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
)

// cleanups release the acquired resources in reverse. The zero value is ready.
type cleanups struct{ steps []cleanup }

type cleanup struct {
	name string
	run  func(ctx context.Context) error
}

// add registers a step; call it on the line after the resource exists.
func (c *cleanups) add(name string, run func(ctx context.Context) error) {
	c.steps = append(c.steps, cleanup{name, run})
}

// close registers a Close.
func (c *cleanups) close(name string, closer interface{ Close() error }) {
	c.add(name, func(context.Context) error { return closer.Close() })
}

// run runs all steps under one deadline and joins their errors. A second call
// does nothing.
func (c *cleanups) run(ctx context.Context, log *slog.Logger) error {
	steps := c.steps
	c.steps = nil
	var errs []error
	for _, step := range slices.Backward(steps) {
		log.Debug("Stopping", "part", step.name)
		if err := step.run(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", step.name, err))
		}
	}
	return errors.Join(errs...)
}
