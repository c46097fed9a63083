package config_test

import (
	"errors"
	"fmt"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

// One call serves validate, run and reload. Every mistake is reported at once.
func ExampleLoad() {
	_, warnings, err := config.Load(config.Options{
		Kinds:     wiring.Kinds(),
		Paths:     []string{"testdata/bad/missing-source.yaml"},
		Environ:   []string{"OBSERVERD_LOG_LEVEL=loud"},
		Overrides: map[string]any{"http.listen": "nowhere"},
	})
	for _, w := range warnings {
		fmt.Println("warning:", w)
	}
	var mistakes *config.Error
	if errors.As(err, &mistakes) {
		for _, p := range mistakes.Problems {
			fmt.Println(p)
		}
	}
	// Output:
	// testdata/bad/missing-source.yaml:4:34: there is no source "warehous"; use warehouse
	// testdata/bad/missing-source.yaml:5:34: there is no source "something"; use warehouse
	// --set http.listen: "nowhere" is not an address; use host:port, for example 127.0.0.1:8080, or "" for none
	// OBSERVERD_LOG_LEVEL: unknown value "loud"; use debug, info, warn or error
}

func ExampleConfig_Types() {
	cfg, _, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{"../../config.yaml"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range cfg.Types() {
		fmt.Println(t.Name, t.LockName, t.Interval, t.TTL, t.Observers[0].Key)
	}
	// Output:
	// inventory inventory-observer-poll 30s 1m0s [warehouse sku]
	// order order-observer-poll 30s 1m0s [order_id]
	// wes wes-observer-poll 30s 1m0s [task_id]
}
