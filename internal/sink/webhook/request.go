package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/webhooks"
)

// drained is how much of an answer is read, so that its connection can be used again.
const drained = 64 << 10

// errTimeout is the cause of a request that took too long.
var errTimeout = errors.New("no answer in time")

// send sends events in one request. A nil error says that they are stored; a [*refusal],
// that the receiver does not want them; an [*outage], that others would fail, too.
func (s *Sink) send(ctx context.Context, batch []events.Event, places []int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.Timeout, errTimeout)
	defer cancel()
	id, body, header := s.encode(batch, places)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.opts.URL, bytes.NewReader(body))
	if err != nil {
		return explained(ctx, err, s.opts.Timeout)
	}
	for name, value := range s.opts.Headers {
		header.Set(name, value)
	}
	now := time.Now() // Of this attempt.
	header.Set(webhooks.ID, id)
	header.Set(webhooks.Timestamp, strconv.FormatInt(now.Unix(), 10))
	if signature := webhooks.Sign(id, now, body, s.opts.Secrets...); signature != "" {
		header.Set(webhooks.Signature, signature)
	}
	header.Set("Idempotency-Key", id)
	header.Set("User-Agent", "observerd")
	r.Header = header
	answer, err := s.client.Do(r)
	s.count(now, answer)
	if err != nil {
		return explained(ctx, err, s.opts.Timeout)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusSwitchingProtocols { // What follows is the connection, which no deadline ends.
		return verdict(answer, now, len(body))
	}
	_, cut := io.CopyN(io.Discard, answer.Body, drained)
	if err := verdict(answer, now, len(body)); err != nil || cut == nil || errors.Is(cut, io.EOF) {
		return err
	}
	return explained(ctx, cut, s.opts.Timeout) // A proxy may have lost the receiver in the middle.
}

// newRequests is the metric of the requests of a sink, which nobody sees without a registry.
func newRequests(o sink.Options) prometheus.ObserverVec {
	return promauto.With(o.Registerer).NewHistogramVec(prometheus.HistogramOpts{
		Name: "observerd_webhook_request_duration_seconds", ConstLabels: prometheus.Labels{"sink": o.Sink},
		Help:    "Time from a request until the header of its answer, by the class of that, such as 2xx; none is a request without an answer.",
		Buckets: prometheus.ExponentialBuckets(0.005, 2, 13),
	}, []string{"code"})
}

// count takes in a request that was sent at that time, and its answer; nil for none.
func (s *Sink) count(sent time.Time, answer *http.Response) {
	if s.opts.Requests == nil {
		return
	}
	code := "none"
	if answer != nil {
		code = fmt.Sprintf("%dxx", answer.StatusCode/100)
	}
	s.opts.Requests.WithLabelValues(code).Observe(time.Since(sent).Seconds())
}

// encode returns the id, the body and the first headers of a request.
func (s *Sink) encode(batch []events.Event, places []int) (id string, body []byte, header http.Header) {
	e := &batch[places[0]]
	header = http.Header{}
	switch s.opts.Mode {
	case "binary":
		values, contentType := events.Binary(e)
		for i, name := range events.Attributes {
			if len(values[i]) > 0 {
				header.Set("Ce-"+name, headerValue(string(values[i])))
			}
		}
		if body = e.Data; contentType != "" {
			header.Set("Content-Type", contentType)
		}
	case "batched":
		header.Set("Content-Type", "application/cloudevents-batch+json; charset=utf-8")
		body = []byte{'['}
		sum := sha256.New()
		for n, i := range places {
			if n > 0 {
				body = append(body, ',')
			}
			body = events.AppendJSON(body, &batch[i])
			_, _ = sum.Write(batch[i].ID[:]) // A hash takes everything.
		}
		of := uuid.UUID(sum.Sum(nil)[:16])
		of[6], of[8] = of[6]&0x0f|0x80, of[8]&0x3f|0x80 // Version 8, as that of events.
		return of.String(), append(body, ']'), header
	default:
		header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
		body = events.AppendJSON(nil, e)
	}
	return e.ID.String(), body, header
}

// headerValue writes an attribute as section 3.1.3.2 of the HTTP binding of CloudEvents 1.0
// asks for.
func headerValue(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '%' {
			_, _ = fmt.Fprintf(&b, "%%%02X", c) // A builder takes everything.
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}
