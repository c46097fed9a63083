package main

import (
	"testing"
	"testing/synctest"

	"github.com/observerd/observerd/internal/config"
)

func TestAReloadDoesNotReadForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		written := make(chan struct{})
		defer close(written)
		s := &supervisor{load: func() (*config.Config, []config.Problem, error) {
			<-written
			return nil, nil, &config.Error{}
		}}
		if r := s.readInTime(t.Context()); r.why == nil {
			t.Error("it gave up without a reason")
		}
	})
}
