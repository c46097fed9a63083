package admin

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

// sinkSubject begins the subject of a finding that is about a sink.
const sinkSubject = "sink "

// probeSinks asks each sink of the configuration whether it can be used, each for as long
// at most. Nothing is written.
func probeSinks(ctx context.Context, sinks []config.Sink, timeout time.Duration) []Finding {
	found := make([][]Finding, len(sinks))
	var work sync.WaitGroup
	for i, s := range sinks {
		work.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			for _, f := range s.Settings.Probe(ctx) {
				finding := Finding{SeverityError, sinkSubject + s.ID, f.Err.Error(), f.Err}
				switch {
				case f.Warning:
					finding.Severity = SeverityWarning
				case wiring.FaultOf(f.Err) == wiring.Failure:
					finding.cause = wiring.Mistake(f.Err)
				}
				found[i] = append(found[i], finding)
			}
		})
	}
	work.Wait()
	return slices.Concat(found...)
}
