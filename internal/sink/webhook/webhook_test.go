package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/sinktest"
	"github.com/observerd/observerd/internal/sink/webhook"
	"github.com/observerd/observerd/webhooks"
)

func TestContract(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"structured", "binary", "batched"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			sinktest.Run(t, func(t *testing.T) sinktest.Harness {
				h, _ := harnessOf(t, mode)
				return h
			})
		})
	}
}

// harnessOf has one request at a time, so that whole streams are in order.
func harnessOf(t *testing.T, mode string) (sinktest.Harness, *receiver) {
	r := newReceiver(t, secret(t, oneSecret))
	var mu sync.Mutex
	var torn, refused bool
	var stalled chan struct{}
	r.answers(func(w http.ResponseWriter, q *http.Request, sent []events.Event) bool {
		mu.Lock()
		tear, refuse, stall := torn, refused, stalled
		torn = false
		mu.Unlock()
		switch {
		case tear:
			cut(w)
		case refuse:
			w.WriteHeader(http.StatusServiceUnavailable)
		case stall != nil:
			select {
			case <-stall:
			case <-q.Context().Done():
			}
		case hasPoison(sent):
			w.WriteHeader(http.StatusUnprocessableEntity)
		default:
			return false
		}
		return true
	})
	return sinktest.Harness{
		Open: func(context.Context, sink.Term) (sink.Sink, error) {
			o := r.options(t)
			o.Mode, o.Concurrency = mode, 1
			return webhook.Open(o), nil
		},
		Stored: r.has,
		Tear: func() {
			mu.Lock()
			defer mu.Unlock()
			torn = true
		},
		Refuse: func() func() {
			set := func(to bool) {
				mu.Lock()
				defer mu.Unlock()
				refused = to
			}
			set(true)
			return func() { set(false) }
		},
		Stall: func() func() {
			mu.Lock()
			defer mu.Unlock()
			stalled = make(chan struct{})
			return sync.OnceFunc(func() {
				mu.Lock()
				defer mu.Unlock()
				close(stalled)
				stalled = nil
			})
		},
		Poison:  func(e *events.Event) { e.Data = []byte(`{"poison":true}`) },
		Repeats: true,
	}, r
}

func hasPoison(sent []events.Event) bool {
	for _, e := range sent {
		if bytes.Contains(e.Data, []byte("poison")) {
			return true
		}
	}
	return false
}

// cut ends the connection in the middle of an answer.
func cut(w http.ResponseWriter) {
	conn, out, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = out.WriteString("HTTP/1.1 20")
	_ = out.Flush()
	_ = conn.Close()
}

// keyed returns events of one stream, of which each has one of the keys in turn.
func keyed(stream string, n int64, keys int) []events.Event {
	all := batch(stream, 1, n)
	for i := range all {
		all[i].Subject = fmt.Sprint("key ", i%keys)
	}
	return all
}

func closeSink(t *testing.T, s sink.Sink) {
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestASlowKeyHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	all := keyed("orders", 40, 4)
	slow, others := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	rest := 30
	r.answers(func(_ http.ResponseWriter, _ *http.Request, sent []events.Event) bool {
		if sent[0].Subject == "key 0" {
			<-slow
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		if rest--; rest == 0 {
			close(others)
		}
		return false
	})
	s := webhook.Open(r.options(t))
	closeSink(t, s)
	go func() {
		<-others // Only then is the slow key answered.
		close(slow)
	}()
	if n, err := sinktest.Deliver(t.Context(), s, all); n != len(all) || err != nil {
		t.Fatalf("stored %d: %v", n, err)
	}
	stored, err := r.has()
	if err != nil || len(stored) != len(all) {
		t.Fatalf("%d events arrived, want %d: %v", len(stored), len(all), err)
	}
	last := make(map[string]int64)
	for _, e := range stored {
		if e.Seq <= last[e.Subject] {
			t.Errorf("%s: event %d came behind %d", e.Subject, e.Seq, last[e.Subject])
		}
		last[e.Subject] = e.Seq
	}
}

func TestWhatIsStoredBehindAFailureIsNotSentAgain(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	all := keyed("orders", 6, 6)
	others := make(chan struct{}, 5)
	r.answers(func(w http.ResponseWriter, _ *http.Request, sent []events.Event) bool {
		if sent[0].Seq != 2 {
			others <- struct{}{}
			return false
		}
		for range 5 {
			<-others
		}
		w.WriteHeader(http.StatusInternalServerError)
		return true
	})
	s := webhook.Open(r.options(t))
	closeSink(t, s)
	if n, err := sinktest.Deliver(t.Context(), s, all); n != 1 || err == nil {
		t.Fatalf("stored %d: %v", n, err)
	}
	r.answers(nil)
	if n, err := sinktest.Deliver(t.Context(), s, all[1:]); n != 5 || err != nil {
		t.Fatalf("stored %d: %v", n, err)
	}
	if stored, _ := r.has(); len(stored) != 6 {
		t.Errorf("%d events were stored, want each of 6 once", len(stored))
	}
}

// refusing refuses each array with the first event of orders, after a second.
type refusing struct{ poison string }

func (r refusing) RoundTrip(q *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(q.Body)
	time.Sleep(time.Second)
	code := http.StatusNoContent
	if bytes.Contains(body, []byte(r.poison)) {
		code = http.StatusUnprocessableEntity
	}
	return &http.Response{StatusCode: code, Body: http.NoBody, Header: http.Header{}}, err
}

// TestAnArrayIsHalvedToItsEnd: a receiver that takes a second to refuse an array of 100 is
// asked until the refused event is found, however long that takes.
func TestAnArrayIsHalvedToItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		batch := keyed("orders", 100, 100)
		o := webhook.Options{URL: "https://shop.example/", Mode: "batched", Concurrency: 1, Timeout: 15 * time.Second}
		s := webhook.OpenOver(o, refusing{batch[0].ID.String()})
		result, err := s.Deliver(t.Context(), batch)
		if err != nil || len(result.Rejected) != 1 || result.Rejected[0].ID != batch[0].ID {
			t.Errorf("%+v, %v, want the first event rejected", result, err)
		}
	})
}

// slow answers after some time, and needs no network.
type slow time.Duration

func (s slow) RoundTrip(q *http.Request) (*http.Response, error) {
	select {
	case <-time.After(time.Duration(s)):
		return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: q}, nil
	case <-q.Context().Done():
		return nil, q.Context().Err()
	}
}

func TestASlowReceiverGetsAsMuchAsThePatienceOfARelayAllows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := webhook.Options{URL: "https://shop", Mode: "structured", Concurrency: 8, Timeout: 20 * time.Second}
		begun := time.Now()
		n, err := sinktest.Deliver(t.Context(), webhook.OpenOver(o, slow(50*time.Millisecond)), keyed("orders", 80, 80))
		if took := time.Since(begun); n != 80 || err != nil || took != 500*time.Millisecond {
			t.Errorf("stored %d of 80 in %v, want all in 10 times 50 ms: %v", n, took, err)
		}
		begun = time.Now()
		n, err = sinktest.Deliver(t.Context(), webhook.OpenOver(o, slow(19*time.Second)), keyed("orders", 80, 80))
		if took := time.Since(begun); n != 8 || err != nil || took > 25*time.Second {
			t.Errorf("stored %d of 80 in %v, want 8 without an error: %v", n, took, err)
		}
	})
}

func TestAFailureOfOneStreamLetsOthersGoOn(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.answers(func(w http.ResponseWriter, _ *http.Request, sent []events.Event) bool {
		if sent[0].Stream == "orders" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		return sent[0].Stream == "orders"
	})
	s := webhook.Open(r.options(t))
	closeSink(t, s)
	result, err := s.Deliver(t.Context(), append(batch("orders", 1, 3), batch("stock", 1, 50)...))
	if err == nil || len(result.Stored) != 1 || result.Stored[0].Seq != 50 {
		t.Errorf("stored %v: %v", result.Stored, err)
	}
	if n := len(r.requests); n != 51 {
		t.Errorf("%d requests, want 51", n)
	}
}

func TestAnOutageEndsTheRequests(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.answers(func(w http.ResponseWriter, _ *http.Request, _ []events.Event) bool {
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	s := webhook.Open(r.options(t))
	closeSink(t, s)
	if n, err := sinktest.Deliver(t.Context(), s, keyed("orders", 200, 200)); n != 0 || err == nil {
		t.Fatalf("stored %d: %v", n, err)
	}
	if n := len(r.requests); n > 8 {
		t.Errorf("%d requests were sent, want no more than 8", n)
	}
}

func TestBatchedSendsArraysWithKeysInOrder(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, secret(t, oneSecret))
	o := r.options(t)
	o.Mode = "batched"
	s := webhook.Open(o)
	closeSink(t, s)
	all := keyed("orders", 400, 37)
	all[200].Data = []byte(`{"poison":true}`)
	r.answers(func(w http.ResponseWriter, _ *http.Request, sent []events.Event) bool {
		if hasPoison(sent) {
			w.WriteHeader(http.StatusBadRequest)
		}
		return hasPoison(sent)
	})
	result, err := s.Deliver(t.Context(), all)
	if err != nil || len(result.Rejected) != 1 || result.Rejected[0].ID != all[200].ID {
		t.Fatalf("rejected %v: %v", result.Rejected, err)
	}
	if result.Stored[0].Seq != 200 {
		t.Errorf("stored up to %d, want 200", result.Stored[0].Seq)
	}
	if n := len(r.requests); n > 40 {
		t.Errorf("%d requests for 400 events", n)
	}
	stored, err := r.has()
	if err != nil {
		t.Fatal(err)
	}
	last := make(map[string]int64)
	for _, e := range stored {
		if e.Seq <= last[e.Subject] {
			t.Errorf("%s: event %d came behind %d", e.Subject, e.Seq, last[e.Subject])
		}
		last[e.Subject] = e.Seq
	}
}

func TestRequestsAreSignedByBothSecretsAndNamed(t *testing.T) {
	t.Parallel()
	for _, known := range []string{oneSecret, otherSecret} {
		r := newReceiver(t, secret(t, known))
		o := r.options(t)
		o.Secrets = []webhooks.Secret{secret(t, oneSecret), secret(t, otherSecret)}
		o.Headers = map[string]string{"authorization": "Bearer hunter2"}
		o.Mode = "binary"
		s := webhook.Open(o)
		closeSink(t, s)
		e := batch("orders", 1, 1)
		e[0].Subject = `Euro € "50%"` + "\x01"
		if n, err := sinktest.Deliver(t.Context(), s, e); n != 1 || err != nil {
			t.Fatalf("stored %d: %v", n, err)
		}
		if _, err := r.has(); err != nil {
			t.Error(err)
		}
		for name, want := range map[string]string{
			"Webhook-Id": e[0].ID.String(), "Idempotency-Key": e[0].ID.String(), "User-Agent": "observerd", "Authorization": "Bearer hunter2",
			"Content-Type": "application/json", "Ce-Specversion": "1.0", "Ce-Id": e[0].ID.String(), "Ce-Source": "/observerd/orders",
			"Ce-Type": events.TypeNewOrder, "Ce-Sequence": "00000000000000000001", "Ce-Rowversion": "0",
			"Ce-Subject": "Euro%20%E2%82%AC%20%2250%25%22%2501",
		} {
			if got := r.requests[0].Header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	}
}

// TestAnswers has no answer repeat anything of a row, nor of the URL.
func TestAnswersAreWeighed(t *testing.T) {
	t.Parallel()
	type answer struct {
		code   int
		header http.Header
	}
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for name, test := range map[string]struct {
		answer
		rejected bool
		want     string
		after    time.Duration
	}{
		"a bad event":         {answer: answer{code: 400}, rejected: true, want: "answers 400 Bad Request to a body of"},
		"too large":           {answer: answer{code: 413}, rejected: true, want: "413 Request Entity Too Large"},
		"unprocessable":       {answer: answer{code: 422}, rejected: true, want: "422"},
		"a wrong token":       {answer: answer{code: 401}, want: "compare secrets and headers"},
		"forbidden":           {answer: answer{code: 403}, want: "compare secrets"},
		"a wrong path":        {answer: answer{code: 404}, want: "correct the path in url"},
		"no POST":             {answer: answer{code: 405}, want: "takes no POST"},
		"under way":           {answer: answer{code: 409}, want: "has to answer 2xx"},
		"another mode":        {answer: answer{code: 415}, want: "set another mode"},
		"a redirect":          {answer: answer{code: 307, header: http.Header{"Location": {"/elsewhere"}}}, want: "set the final address in url"},
		"a web page":          {answer: answer{code: 200, header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}}, want: "a web page"},
		"broken":              {answer: answer{code: 500}, want: "see the log of the receiver"},
		"too many":            {answer: answer{code: 429, header: http.Header{"Retry-After": {"7"}}}, want: "lower concurrency", after: 7 * time.Second},
		"busy until":          {answer: answer{code: 503, header: http.Header{"Retry-After": {at(90 * time.Second)}}}, want: "503", after: 90 * time.Second},
		"busy for ever":       {answer: answer{code: 503, header: http.Header{"Retry-After": {"99999999"}}}, want: "503", after: time.Hour},
		"busy beyond time":    {answer: answer{code: 503, header: http.Header{"Retry-After": {"99999999999999999999"}}}, want: "503", after: time.Hour},
		"busy by its clock":   {answer: answer{code: 503, header: http.Header{"Date": {at(time.Hour)}, "Retry-After": {at(time.Hour + time.Minute)}}}, want: "503", after: time.Minute},
		"another clock":       {answer: answer{code: 400, header: http.Header{"Date": {at(-10 * time.Minute)}}}, want: "apart: set both by NTP"},
		"gone":                {answer: answer{code: 410}, want: "gone for good"},
		"a number of its own": {answer: answer{code: 599}, want: "answers 599; see"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t)
			r.answers(func(w http.ResponseWriter, _ *http.Request, sent []events.Event) bool {
				for name, values := range test.header {
					w.Header()[name] = values
				}
				w.WriteHeader(test.code)
				_, _ = fmt.Fprintf(w, "%s %s", sent[0].Subject, sent[0].Data)
				return true
			})
			s := webhook.Open(r.options(t))
			closeSink(t, s)
			result, err := s.Deliver(t.Context(), keyed("orders", 1, 1))
			if len(result.Stored) > 0 || len(result.Rejected) > 0 != test.rejected || (err == nil) != test.rejected {
				t.Fatalf("result %+v: %v", result, err)
			}
			text := fmt.Sprint(err)
			if test.rejected {
				text = result.Rejected[0].Reason
			}
			if !strings.Contains(text, test.want) || strings.Contains(text, "hunter2") || strings.Contains(text, "key 0") || strings.Contains(text, "ORD") {
				t.Errorf("it says %q, want %q", text, test.want)
			}
			if errors.Is(err, sink.ErrGone) != (test.code == http.StatusGone) {
				t.Errorf("%v is gone, or not", err)
			}
			var asked *sink.RetryAfter
			if errors.As(err, &asked) != (test.after > 0) || asked != nil && (test.after-asked.After).Abs() > 5*time.Second {
				t.Errorf("%+v, want to be left alone for %v", asked, test.after)
			}
		})
	}
}
