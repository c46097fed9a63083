package webhook_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink/sinktest"
	"github.com/observerd/observerd/internal/sink/webhook"
	"github.com/observerd/observerd/webhooks"
)

const oneSecret, otherSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

var batch = sinktest.Batch

func secret(t testing.TB, text string) webhooks.Secret {
	t.Helper()
	s, err := webhooks.ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// receiver keeps what it is sent.
type receiver struct {
	*httptest.Server
	secrets []webhooks.Secret
	// answer may answer in the place of the receiver, and says so.
	answer func(w http.ResponseWriter, r *http.Request, sent []events.Event) bool

	mu       sync.Mutex
	stored   []events.Event
	requests []*http.Request // Without bodies.
	err      error
}

func newReceiver(t testing.TB, secrets ...webhooks.Secret) *receiver {
	r := &receiver{secrets: secrets}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // The sender has gone.
	}
	if err := webhooks.Verify(q.Header, body, 0, r.secrets...); len(r.secrets) > 0 && err != nil {
		r.fail(err)
	}
	sent, err := decode(q.Header, body)
	if err != nil {
		r.fail(err)
	}
	r.mu.Lock()
	r.requests = append(r.requests, q)
	answer := r.answer
	r.mu.Unlock()
	if answer != nil && answer(w, q, sent) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stored = append(r.stored, sent...)
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, err)
}

func (r *receiver) has() ([]events.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]events.Event(nil), r.stored...), r.err
}

func (r *receiver) answers(answer func(http.ResponseWriter, *http.Request, []events.Event) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func (r *receiver) options(t testing.TB) webhook.Options {
	return webhook.Options{URL: r.URL + "/hook?token=hunter2", Secrets: []webhooks.Secret{secret(t, oneSecret)}, Mode: "structured", Concurrency: 8, Timeout: 20 * time.Second}
}

// decode reads the three modes of CloudEvents over HTTP.
func decode(h http.Header, body []byte) (sent []events.Event, err error) {
	texts := []json.RawMessage{body}
	switch kind, _, _ := strings.Cut(h.Get("Content-Type"), ";"); kind {
	case "application/cloudevents+json":
	case "application/cloudevents-batch+json":
		if err := json.Unmarshal(body, &texts); err != nil {
			return nil, err
		}
	default:
		texts[0], err = structured(h, body)
	}
	for _, text := range texts {
		e, decodeErr := events.Decode(text)
		if err = errors.Join(err, decodeErr); err != nil {
			return nil, err
		}
		sent = append(sent, e)
	}
	return sent, nil
}

func structured(h http.Header, body []byte) ([]byte, error) {
	attributes := make(map[string]any)
	for name, values := range h {
		if name, ok := strings.CutPrefix(name, "Ce-"); ok {
			text, err := url.PathUnescape(values[0])
			if err != nil {
				return nil, err
			}
			attributes[strings.ToLower(name)] = text
		}
	}
	for _, name := range []string{"rowversion", "snapshot"} {
		if text, ok := attributes[name].(string); ok {
			attributes[name] = json.RawMessage(text)
		}
	}
	switch h.Get("Content-Type") {
	case "application/json":
		bare, err := json.Marshal(attributes)
		if err != nil {
			return nil, err
		}
		return append(append(bytes.TrimSuffix(bare, []byte("}")), append([]byte(`,"data":`), body...)...), '}'), nil
	case "application/octet-stream":
		attributes["data_base64"] = base64.StdEncoding.EncodeToString(body)
	}
	return json.Marshal(attributes)
}
