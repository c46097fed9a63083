package webhook_test

import (
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/sinktest"
	"github.com/observerd/observerd/internal/sink/webhook"
)

// settings are those of a section of the configuration.
func settings(t *testing.T, url string, set func(*webhook.Settings)) *webhook.Settings {
	t.Helper()
	s := &webhook.Settings{
		Secrets:     []webhook.Signing{{Secret: field.NewSecret(oneSecret)}},
		Mode:        "structured",
		Concurrency: 8,
		Timeout:     20 * time.Second,
	}
	if err := s.URL.UnmarshalText([]byte(url)); err != nil {
		t.Fatal(err)
	}
	if set != nil {
		set(s)
	}
	return s
}

// report collects what is reported.
type report struct{ texts []string }

func (r *report) Reject(key, text string) { r.texts = append(r.texts, key+": "+text) }
func (r *report) Warn(key, text string)   { r.texts = append(r.texts, "?"+key+": "+text) }

func compare(t *testing.T, found []string, want string) {
	t.Helper()
	text := strings.Join(found, "\n")
	if (text == "") != (want == "") || !strings.Contains(text, want) || len(found) > 1 || strings.Contains(text, "hunter2") {
		t.Errorf("found %q, want %q", found, want)
	}
}

func TestCheckSaysWhatToWriteInstead(t *testing.T) {
	t.Parallel()
	secrets := func(texts ...string) func(*webhook.Settings) {
		return func(s *webhook.Settings) {
			s.Secrets = nil
			for _, text := range texts {
				s.Secrets = append(s.Secrets, webhook.Signing{Secret: field.NewSecret(text)})
			}
		}
	}
	header := func(name, value string) func(*webhook.Settings) {
		return func(s *webhook.Settings) { s.Headers = map[string]field.Secret{name: field.NewSecret(value)} }
	}
	insecure := func(s *webhook.Settings) { s.Insecure = true }
	for name, test := range map[string]struct {
		url  string
		set  func(*webhook.Settings)
		want string
	}{
		"all is well":           {url: "https://shop/hook?token=hunter2"},
		"this host":             {url: "http://localhost:8080"},
		"this host by number":   {url: "http://[::1]:8080"},
		"another host":          {url: "http://shop/hunter2", want: "url: events would be sent to another host without encryption; use https://, or insecure: true"},
		"another by number":     {url: "http://10.0.0.1", want: "url: 10.0.0.1 is another host"},
		"insecure":              {url: "http://shop", set: insecure},
		"metadata":              {url: "http://169.254.169.254/hunter2", set: insecure, want: "url: 169.254.169.254 is link-local"},
		"TLS without TLS":       {url: "http://localhost", set: func(s *webhook.Settings) { s.TLS.ServerName = "shop" }, want: "tls: it is not used with http://; set https:// in url"},
		"two secrets":           {url: "https://shop", set: secrets(oneSecret, otherSecret+"\n")},
		"three secrets":         {url: "https://shop", set: secrets(oneSecret, oneSecret, oneSecret), want: "secrets: more than two"},
		"a secret that is none": {url: "https://shop", set: secrets("hunter2-hunter2"), want: "secrets[0]: the secret is not base64; use whsec_"},
		"a header":              {url: "https://shop", set: header("authorization", "Bearer hunter2")},
		"a header of ours":      {url: "https://shop", set: header("Webhook-Id", "hunter2"), want: "headers: Webhook-Id is set by observerd; remove it"},
		"a header that is none": {url: "https://shop", set: header("a b", "hunter2"), want: `headers: "a b" is not a valid name of a header`},
		"a header of two lines": {url: "https://shop", set: header("A", "hunter2\nB: c"), want: "headers: the value of A has a line break"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r report
			settings(t, test.url, test.set).Check(&r)
			compare(t, r.texts, test.want)
		})
	}
}

func TestProbeConnectsAndSendsNothing(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	encrypted, authority := overTLS(t, r)
	trusted := func(s *webhook.Settings) { s.TLS.CAFile = authority }
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for name, test := range map[string]struct {
		url  string
		set  func(*webhook.Settings)
		want string
	}{
		"plain":               {url: r.URL},
		"encrypted":           {url: encrypted.URL, set: trusted},
		"nobody listens":      {url: closed.URL + "/hunter2", want: "cannot be reached"},
		"no TLS":              {url: "https" + strings.TrimPrefix(r.URL, "http"), want: "speaks no TLS"},
		"unknown authority":   {url: encrypted.URL, want: "certificate is not accepted: x509"},
		"another certificate": {url: encrypted.URL, set: func(s *webhook.Settings) { trusted(s); s.TLS.ServerName = "shop.test" }, want: "not shop.test; set tls.ca-file"},
		"an account":          {url: strings.Replace(r.URL, "//", "//me:hunter2@", 1), want: "?url has an account"},
		"no secrets":          {url: r.URL, set: func(s *webhook.Settings) { s.Secrets = nil }, want: "?there are no secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var texts []string
			for _, f := range settings(t, test.url, test.set).Probe(t.Context()) {
				text := f.Err.Error()
				if f.Warning {
					text = "?" + text
				}
				texts = append(texts, text)
			}
			compare(t, texts, test.want)
		})
	}
	t.Cleanup(func() { // When the parallel tests are done.
		if len(r.requests) > 0 {
			t.Errorf("%d requests were sent", len(r.requests))
		}
	})
}

func TestASinkOfTheConfigurationDeliversByHTTP2(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, secret(t, oneSecret))
	encrypted, authority := overTLS(t, r)
	opener := settings(t, encrypted.URL, func(s *webhook.Settings) { s.TLS.CAFile = authority }).Opener(sink.Options{})
	s, err := opener(t.Context(), sink.Term{})
	if err != nil {
		t.Fatal(err)
	}
	closeSink(t, s)
	all := keyed("orders", 30, 10)
	if n, err := sinktest.Deliver(t.Context(), s, all); n != len(all) || err != nil {
		t.Fatalf("stored %d: %v", n, err)
	}
	if _, err := r.has(); err != nil || r.requests[0].ProtoMajor != 2 {
		t.Errorf("protocol %s: %v", r.requests[0].Proto, err)
	}
}

// overTLS serves HTTP/1.1 and 2 with a certificate, which is in the file authority.
func overTLS(t *testing.T, h http.Handler) (s *httptest.Server, authority string) {
	s = httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	s.StartTLS()
	t.Cleanup(s.Close)
	authority = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return s, authority
}
