package githublock

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v93/github"

	"github.com/observerd/observerd/internal/lock"
)

// requestTimeout bounds a request whose caller allows for more.
const requestTimeout = 10 * time.Second

// newClient returns a client of the server's REST API.
func newClient(o Options, b *budget) (*github.Client, error) {
	base := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute}
	var err error
	if base.TLSClientConfig, err = o.TLS.Config(); err != nil {
		return nil, err
	}
	t := &transport{token: o.Token, base: base, budget: b, known: make(map[string]answer)}
	options := []github.ClientOptionsFunc{github.WithTransport(t), github.WithTimeout(requestTimeout), github.WithUserAgent("observerd")}
	if u, err := url.Parse(o.URL); err != nil || u.User != nil {
		return nil, errors.New("the URL is none, or has a user in it; use https://HOST")
	}
	if o.URL != "" {
		options = append(options, github.WithEnterpriseURLs(o.URL, o.URL))
	}
	c, err := github.NewClient(options...)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	at, err := url.Parse(c.BaseURL())
	t.origin = at.Scheme + "://" + at.Host
	return c, err
}

// transport sends requests with the token, and answers from what it knows where the server
// says that it has not changed: that costs nothing of the rate limit. It never answers without
// asking.
type transport struct {
	origin string // that gets the token
	token  func() (string, error)
	base   *http.Transport
	budget *budget

	mu    sync.Mutex
	known map[string]answer // by URL
}

// answer is the last to a GET.
type answer struct {
	header http.Header
	body   []byte
}

// mostKnown and mostBody bound the answers that are remembered, and their length.
const (
	mostKnown = 200
	mostBody  = 128 << 10
)

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := t.token()
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	r = r.Clone(r.Context())
	if r.URL.Scheme+"://"+r.URL.Host == t.origin {
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
	}
	to := r.URL.String()
	t.mu.Lock()
	known, ok := t.known[to]
	t.mu.Unlock()
	reads := r.Method == http.MethodGet
	if ok && reads {
		r.Header.Set("If-None-Match", known.header.Get("ETag"))
	}
	if !reads {
		t.budget.wrote()
	}
	resp, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	t.budget.answered(resp.Header)
	switch {
	case reads && ok && resp.StatusCode == http.StatusNotModified:
		_ = resp.Body.Close()
		resp.StatusCode, resp.Status = http.StatusOK, "200 OK"
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(known.body)), int64(len(known.body))
		for _, name := range []string{"Content-Type", "Link"} {
			if resp.Header.Get(name) == "" {
				resp.Header[name] = known.header[name]
			}
		}
	case reads && resp.StatusCode == http.StatusOK && resp.Header.Get("ETag") != "":
		body, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		if len(body) > mostBody {
			break
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if len(t.known) >= mostKnown {
			clear(t.known)
		}
		t.known[to] = answer{resp.Header.Clone(), body}
	}
	return resp, nil
}

// CloseIdleConnections is called by [http.Client].
func (t *transport) CloseIdleConnections() { t.base.CloseIdleConnections() }

// statusOf returns the status of an answer that is an error, or 0.
func statusOf(err error) int {
	if answer, ok := errors.AsType[*github.ErrorResponse](err); ok && answer.Response != nil {
		return answer.Response.StatusCode
	}
	return 0
}

// explained says what a refusal means, and what to grant. The server's own words are kept.
func (s *issues) explained(err error) error {
	if err == nil {
		return nil
	}
	if limit, ok := errors.AsType[*github.RateLimitError](err); ok {
		return fmt.Errorf("the rate limit of the token is used up until %s: %w", limit.Rate.Reset.UTC().Format(time.RFC3339), err)
	}
	var text, wait string
	if answer, ok := errors.AsType[*github.ErrorResponse](err); ok && answer.Response != nil {
		text, wait = strings.ToLower(answer.Message), answer.Response.Header.Get("Retry-After")
	}
	if slow, ok := errors.AsType[*github.AbuseRateLimitError](err); ok {
		wait = "60" // What GitHub says where the answer does not.
		if slow.RetryAfter != nil {
			wait = strconv.Itoa(int(slow.RetryAfter.Seconds()))
		}
	}
	switch status := statusOf(err); {
	case wait != "":
		return fmt.Errorf("the server limits the token for another %s seconds; use fewer locks, or a longer heartbeat: %w", wait, err)
	case status == http.StatusUnauthorized:
		return fmt.Errorf("%w: the server does not know the token (401); make another one: %w", lock.ErrRefused, err)
	case status == http.StatusForbidden && strings.Contains(text, "archived"):
		return fmt.Errorf("%w: the repository %s is archived; unarchive it, or name another: %w", lock.ErrRefused, s.Repository, err)
	case status == http.StatusForbidden && strings.Contains(text, "locked"):
		return fmt.Errorf("the conversation of the issue is locked; unlock it: %w", err)
	case status == http.StatusForbidden:
		return fmt.Errorf("%w: the token may not do this in %s; give it contents: write and issues: write (a classic token: the scope repo), and its account the right to push: %w",
			lock.ErrRefused, s.Repository, err)
	case status == http.StatusNotFound:
		return fmt.Errorf("%s has no such object, or the token may not see it; check repository, and give the token contents: write and issues: write: %w", s.Repository, err)
	case status == http.StatusConflict && strings.Contains(text, "empty"):
		return fmt.Errorf("the repository %s has no commit; make one, such as a README: %w", s.Repository, err)
	case status == http.StatusGone:
		return fmt.Errorf("issues are switched off in %s; switch them on in its settings: %w", s.Repository, err)
	}
	return err
}
