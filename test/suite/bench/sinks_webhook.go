package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/webhook"
	"github.com/observerd/observerd/webhooks"
)

// measureWebhook sends to a receiver in this process, which reads what it is sent and forgets it.
func measureWebhook(ctx context.Context, f *feed) (figures []figure, err error) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()
	all := f.events[:len(f.events)/outboxShare]
	secret, err := webhooks.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		return nil, err
	}
	bare := func(ctx context.Context, _ int) (time.Duration, error) { return postAll(ctx, receiver.URL, all) }
	for _, mode := range []string{"structured", "batched"} {
		o := webhook.Options{URL: receiver.URL, Secrets: []webhooks.Secret{secret}, Mode: mode, Concurrency: crowd, Timeout: 15 * time.Second}
		ours := func(ctx context.Context, round int) (time.Duration, error) {
			open := func(context.Context, sink.Term) (sink.Sink, error) { return webhook.Open(o), nil }
			return f.deliver(ctx, fmt.Sprint("webhook-", mode, "-", round), webhook.Kind.Settings().Batch(), len(all), open)
		}
		rates, err := f.inTurns(ctx, len(all), ours, bare)
		if err != nil {
			return nil, err
		}
		figures = append(figures, rateFigure("webhook, "+mode+", 8 requests at once", "an unsigned POST an event, 8 at once,", rates[0], rates[1], 0))
	}
	return figures, nil
}

// postAll posts the events one by one, several at once.
func postAll(ctx context.Context, url string, all []events.Event) (time.Duration, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: crowd}}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	tasks, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for range crowd {
		tasks.Go(func() error {
			for {
				i := next.Add(1) - 1
				if i >= int64(len(all)) {
					return nil
				}
				if err := post(ctx, client, url, events.AppendJSON(nil, &all[i])); err != nil {
					return err
				}
			}
		})
	}
	err := tasks.Wait()
	return time.Since(began), err
}

func post(ctx context.Context, client *http.Client, url string, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	err = errors.Join(err, answer.Body.Close())
	if answer.StatusCode != http.StatusNoContent {
		err = errors.Join(err, fmt.Errorf("the receiver answers %s", answer.Status))
	}
	return err
}
