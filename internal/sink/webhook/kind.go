package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/webhooks"
)

// Kind is the kind of sink that is of type webhook in the configuration.
var Kind = kind.Kind[sink.Settings]{Name: "webhook", Settings: func() sink.Settings { return new(settings) }}

type settings struct {
	// URL is where events are sent. Required.
	URL     field.URL `key:"url" shown:"required for webhook" required:"true" schemes:"https|http"`
	URLFile string    `key:"url-file" unit:"file name"`
	// Secrets sign the requests: one, or two while it is changed. Default: none.
	Secrets []signing `key:"secrets"`
	// Headers are sent with each request. Default: none.
	Headers map[string]field.Secret `key:"headers"`
	// TLS is for https://.
	TLS field.TLS `key:"tls"`
	// Mode is how CloudEvents are put into requests. Default: structured.
	Mode string `key:"mode" default:"structured" oneof:"structured|binary|batched"`
	// Concurrency is how many requests are under way at most. Default: 8.
	Concurrency int `key:"concurrency" default:"8" min:"1" max:"64" unit:"requests"`
	// Timeout bounds a request. Default: 15 s; at most 20 s, since a relay waits for 30.
	Timeout time.Duration `key:"timeout" default:"15s" min:"100ms" max:"20s"`
	// Insecure allows http:// to another host. Default: false.
	Insecure bool `key:"insecure" default:"false"`
}

type signing struct {
	Secret field.Secret `key:"secret" required:"true"`
	File   string       `key:"secret-file" unit:"file name"`
}

// Target is the receiver: another sink would send each event there a second time.
func (s *settings) Target() (key, place string) { return "url", "webhook " + s.URL.Reveal() }

// Batch lets one call take about [round] where a receiver answers within 80 ms.
func (*settings) Batch() int { return 500 }

var (
	headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	ours       = []string{
		"connection", "content-encoding", "content-length", "content-type", "host", "idempotency-key",
		"te", "trailer", "transfer-encoding", "upgrade", "user-agent",
	}
)

func (s *settings) Check(r field.Report) {
	if u, err := url.Parse(s.URL.Reveal()); err == nil {
		s.checkHost(r, u.Hostname())
	}
	if s.URL.Scheme == "http" && s.TLS != (field.TLS{}) {
		r.Reject("tls", "it is not used with http://; set https:// in url")
	}
	if len(s.Secrets) > 2 {
		r.Reject("secrets", "more than two; set the one that the receiver knows, and the next one while it is changed")
	}
	for i, given := range s.Secrets {
		if _, err := webhooks.ParseSecret(given.Secret.Reveal()); err != nil {
			r.Reject(fmt.Sprintf("secrets[%d]", i), err.Error())
		}
	}
	for name, value := range s.Headers {
		low := strings.ToLower(name)
		switch {
		case !headerName.MatchString(name):
			r.Reject("headers", fmt.Sprintf("%q is not a valid name of a header; use a name such as Authorization", name))
		case slices.Contains(ours, low), strings.HasPrefix(low, "ce-"), strings.HasPrefix(low, "webhook-"):
			r.Reject("headers", fmt.Sprintf("%s is set by observerd; remove it", name))
		case strings.ContainsFunc(value.Reveal(), func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
			r.Reject("headers", fmt.Sprintf("the value of %s has a line break or another control character; remove it", name))
		}
	}
}

func (s *settings) checkHost(r field.Report, host string) {
	a, err := netip.ParseAddr(host)
	switch plain := s.URL.Scheme == "http" && !s.Insecure; {
	case err == nil:
		if err := refused(a, plain); err != nil {
			r.Reject("url", err.Error())
		}
	case plain && !strings.EqualFold(host, "localhost"):
		r.Reject("url", "events would be sent to another host without encryption; use https://, or insecure: true")
	}
}

func (s *settings) options() (Options, error) {
	o := Options{
		URL:         s.URL.Reveal(),
		Headers:     make(map[string]string),
		Mode:        s.Mode,
		Concurrency: s.Concurrency,
		Timeout:     s.Timeout,
		Insecure:    s.Insecure,
	}
	for name, value := range s.Headers {
		o.Headers[name] = value.Reveal()
	}
	for _, given := range s.Secrets {
		secret, err := webhooks.ParseSecret(given.Secret.Reveal())
		if err != nil {
			return o, err
		}
		o.Secrets = append(o.Secrets, secret)
	}
	var err error
	o.TLS, err = s.TLS.Config()
	return o, err
}

// Opener reads the files of TLS for each term anew.
func (s *settings) Opener(of sink.Options) func(context.Context, sink.Term) (sink.Sink, error) {
	requests := newRequests(of)
	return func(context.Context, sink.Term) (sink.Sink, error) {
		o, err := s.options()
		if err != nil {
			return nil, err
		}
		o.Requests = requests
		return Open(o), nil
	}
}

// Probe connects, and sends no request: a receiver would take any for an event.
func (s *settings) Probe(ctx context.Context) (findings []kind.Finding) {
	warn := func(text string) {
		findings = append(findings, kind.Finding{Warning: true, Err: errors.New(text)})
	}
	if len(s.Secrets) == 0 {
		warn("there are no secrets, so the receiver cannot tell who sends events; set secrets: [{secret-file: …}], as from openssl rand -base64 32")
	}
	o, err := s.options()
	if err != nil {
		return append(findings, kind.Finding{Err: err})
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, o.URL, nil)
	if err != nil {
		return append(findings, kind.Finding{Err: explained(ctx, err, o.Timeout)})
	}
	if r.URL.User != nil {
		warn("url has an account, which proxies and receivers may log; set headers: {Authorization: …}")
	}
	if proxy, err := http.ProxyFromEnvironment(r); err != nil || proxy != nil {
		warn("requests go through the proxy that the environment names, so it was not tried whether the receiver can be reached, and the proxy decides which addresses are")
		return findings
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, errTimeout)
	defer cancel()
	if err := connect(ctx, o, r.URL); err != nil {
		findings = append(findings, kind.Finding{Err: explained(ctx, err, o.Timeout)})
	}
	return findings
}

// connect connects to the receiver and ends the connection.
func connect(ctx context.Context, o Options, u *url.URL) error {
	port, dial := "443", (&tls.Dialer{NetDialer: dialer(o), Config: o.TLS}).DialContext
	if u.Scheme == "http" {
		port, dial = "80", dialer(o).DialContext
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port)))
	if err != nil {
		return err
	}
	return conn.Close()
}
