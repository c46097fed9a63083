package clustertest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// errEnded reports a process that is no more.
var errEnded = errors.New("the process has ended")

// get asks the process for a page.
func (d *daemon) get(t *testing.T, path string) (int, string, error) {
	t.Helper()
	select {
	case <-d.exited:
		return 0, "", fmt.Errorf("%s: %w with %v", d.name, errEnded, d.cmd.ProcessState)
	default:
	}
	address := d.log.value("Listening", "address")
	if address == "" {
		return 0, "", fmt.Errorf("%s does not listen yet", d.name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	request.Close = true // A kept connection would outlive the test.
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// answers complains unless the page has that status.
func (d *daemon) answers(t *testing.T, path string, want int) error {
	t.Helper()
	code, text, err := d.get(t, path)
	if err == nil && code != want {
		err = fmt.Errorf("%s of %s: %d %s, want %d", path, d.name, code, text, want)
	}
	if errors.Is(err, errEnded) {
		t.Fatal(err)
	}
	return err
}

// ready waits until the process can do its work.
func (d *daemon) ready(t *testing.T) *daemon {
	t.Helper()
	eventually(t, func() error { return d.answers(t, "/readyz", http.StatusOK) })
	return d
}

// metric returns the sum of the samples whose name and labels hold all of
// these texts.
func (d *daemon) metric(t *testing.T, name string, labels ...string) (sum float64, err error) {
	t.Helper()
	_, text, err := d.get(t, "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		sample, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || sample != name && !strings.HasPrefix(sample, name+"{") || !containsAll(sample, labels) {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", name, err)
		}
		sum += v
	}
	return sum, nil
}

// counted complains until the counter of the process is at least 1.
func (d *daemon) counted(t *testing.T, name string, labels ...string) error {
	t.Helper()
	n, err := d.metric(t, name, labels...)
	if err == nil && n < 1 {
		err = fmt.Errorf("%s%v of %s is %v, want 1 or more", name, labels, d.name, n)
	}
	return err
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}
