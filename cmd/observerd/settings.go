package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

// errNoConfig is an empty variable of a script, most likely: a node on defaults
// would look well and poll nothing.
var errNoConfig = usageError{errors.New("--config is empty; name a file")}

// loadConfig loads the configuration as the global flags say. The error of a
// mistake in the configuration is a [*config.Error].
func (c *cli) loadConfig() (*config.Config, []config.Problem, error) {
	if slices.Contains(c.configPaths, "") {
		return nil, nil, errNoConfig
	}
	overrides, err := c.overrides()
	if err != nil {
		return nil, nil, err
	}
	return config.Load(config.Options{
		Paths: c.configPaths, Kinds: wiring.Kinds(), Environ: c.environ, Overrides: overrides, FlagNames: map[string]string{"log.level": "--log-level"},
	})
}

// configure loads the configuration for a one-shot command, which prints
// warnings and goes on.
func (c *cli) configure() (*config.Config, error) {
	cfg, warnings, err := c.loadConfig()
	warn(c.stderr, warnings)
	return cfg, err
}

func warn(w io.Writer, warnings []config.Problem) {
	for _, p := range warnings {
		fmt.Fprintf(w, "warning: %s\n", p)
	}
}

// overrides are what --set and --log-level say.
func (c *cli) overrides() (map[string]any, error) {
	overrides := make(map[string]any)
	for _, setting := range c.settings {
		key, value, ok := strings.Cut(setting, "=")
		if !ok || key == "" {
			// The text is not repeated: it may be a secret without its key.
			return nil, usageError{errors.New("--set needs a key and a value, such as --set log.level=debug")}
		}
		overrides[key] = value
	}
	if c.logLevel != "" {
		overrides["log.level"] = c.logLevel
	}
	return overrides, nil
}
