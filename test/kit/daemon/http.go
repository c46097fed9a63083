package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// pollEvery is the distance of looks while something is waited for.
const pollEvery = 25 * time.Millisecond

// askTimeout bounds one request to a process, which may be stopped.
const askTimeout = 5 * time.Second

// client keeps no connections: those to a process that was killed would stay.
func client() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

// Address returns where the process serves HTTP, or an error while it does not.
func (p *Process) Address() (string, error) {
	_, address, found := strings.Cut(p.Log.Value("Starting node", "http"), "://")
	if !found {
		return "", fmt.Errorf("%s does not listen", p.name)
	}
	return address, nil
}

// Get asks the process for a page.
func (p *Process) Get(ctx context.Context, path string) (status int, body []byte, err error) {
	address, err := p.Address()
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	response, err := client().Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("ask %s for %s: %w", p.name, path, err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, fmt.Errorf("ask %s for %s: %w", p.name, path, err)
	}
	return response.StatusCode, body, nil
}

// Ready waits until the process says that it is ready. That it has ended is an
// error.
func (p *Process) Ready(ctx context.Context) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		status, body, err := p.Get(ctx, "/readyz")
		if err == nil && status == http.StatusOK {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("it answers %d: %s", status, body)
		}
		select {
		case <-ticker.C:
		case <-p.exited:
			return fmt.Errorf("%s has ended with %d before it was ready; its log ends with:\n%s", p.name, p.ExitCode(), p.Log.Tail(2000))
		case <-ctx.Done():
			return fmt.Errorf("wait until %s is ready: %w", p.name, errors.Join(context.Cause(ctx), err))
		}
	}
}
