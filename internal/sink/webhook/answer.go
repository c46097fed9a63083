package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/sink"
)

const (
	// longest is the longest Retry-After that is kept.
	longest = time.Hour
	// apart is how far the clocks may be apart before a refusal is put down to them: less
	// than the tolerance of receivers.
	apart = 2 * time.Minute
)

// refusal says that a receiver will never take an event as it is.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

// outage is a failure that other events would meet with, too.
type outage struct{ error }

func (o *outage) Unwrap() error { return o.error }

// advice is what to do about a status that says nothing of the event: it waits, since the
// next event would get it as well. Those of 4xx that are not here are refusals.
var advice = map[int]string{
	http.StatusUnauthorized:               "compare secrets and headers with what the receiver expects",
	http.StatusPaymentRequired:            "ask who runs the receiver",
	http.StatusForbidden:                  "compare secrets, headers and the address of this host with what the receiver allows",
	http.StatusNotFound:                   "correct the path in url",
	http.StatusMethodNotAllowed:           "correct url: what it names takes no POST",
	http.StatusNotAcceptable:              "have the receiver answer whatever Accept says",
	http.StatusProxyAuthRequired:          "write the account of the proxy into HTTPS_PROXY",
	http.StatusRequestTimeout:             "the receiver did not get the body in time",
	http.StatusLengthRequired:             "configure the proxy before the receiver to pass the length on",
	http.StatusConflict:                   "a receiver that has the event already has to answer 2xx",
	http.StatusUnsupportedMediaType:       "set another mode",
	http.StatusMisdirectedRequest:         "correct the host in url",
	http.StatusLocked:                     "it is tried again",
	http.StatusTooEarly:                   "it is tried again",
	http.StatusSwitchingProtocols:         "correct url: what it names speaks another protocol",
	http.StatusUpgradeRequired:            "set https:// in url",
	http.StatusTooManyRequests:            "lower concurrency, or have the receiver take more",
	http.StatusUnavailableForLegalReasons: "ask who runs the receiver",
	http.StatusServiceUnavailable:         "it is tried again",
}

// ofOneEvent are failures that need not be those of others.
var ofOneEvent = []int{http.StatusRequestTimeout, http.StatusConflict, http.StatusLocked, http.StatusTooEarly}

// verdict returns nil for an answer that says that a request of so many bytes is stored.
func verdict(answer *http.Response, now time.Time, size int) error {
	code := answer.StatusCode
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	failed := func(then string) error {
		err := fmt.Errorf("the receiver answers %s; %s", named(code), then)
		if after, ok := retryAfter(answer.Header, now); ok {
			return &sink.RetryAfter{Err: fmt.Errorf("%w; it asks to wait for %v", err, after), After: after}
		}
		return err
	}
	hint, waits := advice[code]
	switch {
	case code >= 200 && code < 300 && (kind == "text/html" || kind == "application/xhtml+xml"):
		return &outage{failed("and a web page, as a site or the login of a proxy does: correct url, or have the receiver answer without one")}
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusGone:
		return &outage{fmt.Errorf("the receiver answers %s: %w", named(code), sink.ErrGone)}
	case code >= 300 && code < 400:
		return &outage{failed("redirects are not followed: set the final address in url")}
	case (waits || code == http.StatusBadRequest) && skew(answer.Header, now).Abs() > apart:
		return &outage{failed(fmt.Sprintf("its clock and that of this host are %v apart: set both by NTP", skew(answer.Header, now).Abs().Round(time.Second)))}
	case waits && !slices.Contains(ofOneEvent, code):
		return &outage{failed(hint)}
	case waits:
		return failed(hint)
	case code >= 400 && code < 500:
		return &refusal{fmt.Sprintf("the receiver answers %s to a body of %d bytes", named(code), size)}
	}
	return failed("see the log of the receiver")
}

// named leaves out the reason that the receiver writes behind the number.
func named(code int) string { return strings.TrimSpace(fmt.Sprint(code, " ", http.StatusText(code))) }

// retryAfter reads the header in both of its forms; a date is one of the receiver's clock.
func retryAfter(h http.Header, now time.Time) (after time.Duration, ok bool) {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil || errors.Is(err, strconv.ErrRange) { // Of more it is the most.
		return min(time.Duration(seconds)*time.Second, longest), true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	return min(max(at.Sub(now)-skew(h, now), 0), longest), true
}

// skew is how far the receiver's clock is ahead, as far as it says.
func skew(h http.Header, now time.Time) time.Duration {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return at.Sub(now)
}

// explained returns why there was no answer, without the URL and what the receiver wrote.
func explained(ctx context.Context, err error, limit time.Duration) error {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return fmt.Errorf("the receiver did not answer within %v", limit)
	}
	if of, is := errors.AsType[*url.Error](err); is {
		err = of.Err
	}
	if proxy, is := errors.AsType[*outage](err); is {
		return proxy
	}
	dial, dialled := errors.AsType[*net.OpError](err)
	timeout, timed := errors.AsType[net.Error](err)
	switch certificate, refused := errors.AsType[*tls.CertificateVerificationError](err); {
	case refused:
		return &outage{fmt.Errorf("the receiver's certificate is not accepted: %w; set tls.ca-file, or correct the host in url", certificate.Err)}
	case errors.As(err, new(tls.RecordHeaderError)), errors.Is(err, http.ErrSchemeMismatch):
		return &outage{errors.New("the receiver speaks no TLS; use http:// or another port in url")}
	case dialled && (dial.Op == "dial" || dial.Op == "proxyconnect"):
		return &outage{fmt.Errorf("the receiver cannot be reached: %w", err)}
	case timed && timeout.Timeout():
		return errors.New("the receiver did not answer in time")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the receiver closed the connection without an answer")
	case dialled, ctx.Err() != nil, strings.HasPrefix(err.Error(), "tls: "):
		return fmt.Errorf("send to the receiver: %w", err)
	}
	// Other errors may quote the answer.
	return errors.New("the receiver answers no HTTP, or was cut off; compare the port in url")
}
