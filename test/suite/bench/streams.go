package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/sqlsink"
	"github.com/observerd/observerd/internal/sink/webhook"
	"github.com/observerd/observerd/test/kit/testbed"
)

const (
	// slowness is how long the receiver thinks about a request.
	slowness   = 50 * time.Millisecond
	goalStream = 30 * time.Second
)

// measureManyStreams has many streams with an event each, and a receiver that takes its time.
func measureManyStreams(ctx context.Context, s *suite) (figures []figure, err error) {
	where, err := s.cluster.coordination(ctx, "streams")
	if err != nil {
		return nil, err
	}
	if err := fillLog(ctx, where, s.streams, 1); err != nil {
		return nil, err
	}
	f := &feed{suite: s}
	if f.db, err = openStore(ctx, where); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.db.Close()) }()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if testbed.Wait(r.Context(), slowness) == nil {
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	defer receiver.Close()
	report := func(what, bound string, took time.Duration) {
		f := figure{
			group: fmt.Sprintf("%s streams with an event each, behind a receiver of 50 ms", thousands(s.streams)), what: what,
			value: say("%s s", decimal(took.Seconds(), 2)), beside: say(bound),
			goal: "under 30 s", met: []bool{took < goalStream},
		}
		s.progress("many-streams: %s: %s", f.what, f.value)
		figures = append(figures, f)
	}
	for _, way := range []struct {
		mode        string
		concurrency int
	}{{"structured", crowd}, {"structured", 8 * crowd}, {"batched", crowd}} {
		o := webhook.Options{URL: receiver.URL, Mode: way.mode, Concurrency: way.concurrency, Timeout: 15 * time.Second}
		took, err := f.deliver(ctx, fmt.Sprint(way.mode, "-", way.concurrency), webhook.Kind.Settings().Batch(), s.streams,
			func(context.Context, sink.Term) (sink.Sink, error) { return webhook.Open(o), nil })
		if err != nil {
			return nil, err
		}
		bound := "an answer is for as many events as fit"
		if way.mode == "structured" {
			bound = fmt.Sprintf("the answers alone %.2f s", (slowness * time.Duration(s.streams/way.concurrency)).Seconds())
		}
		report(fmt.Sprintf("webhook, %s, %d requests at once", way.mode, way.concurrency), bound, took)
	}
	target, err := s.cluster.database(ctx, "streams_target")
	if err != nil {
		return nil, err
	}
	took, err := f.deliver(ctx, "sql", feedBatch, s.streams, func(ctx context.Context, t sink.Term) (sink.Sink, error) {
		return sqlsink.Open(ctx, sqlsink.Options{Sink: "sql", URL: target, Schema: "public", Create: true}, t)
	})
	if err != nil {
		return nil, err
	}
	report("sql, whose server is near", "", took)
	return figures, nil
}
