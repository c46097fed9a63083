package cluster_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
)

// errEnded reports a process that is no more.
var errEnded = errors.New("the process has ended")

// get asks the process for a page.
func (d *daemon) get(t *testing.T, path string) (int, string, error) {
	t.Helper()
	if !d.Running() {
		return 0, "", fmt.Errorf("%s: %w with %d", d.Name(), errEnded, d.ExitCode())
	}
	code, text, err := d.Get(t.Context(), path)
	return code, string(text), err
}

// answers complains unless the page has that status.
func (d *daemon) answers(t *testing.T, path string, want int) error {
	t.Helper()
	code, text, err := d.get(t, path)
	if err == nil && code != want {
		err = fmt.Errorf("%s of %s: %d %s, want %d", path, d.Name(), code, text, want)
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

// metric returns the sum of the samples of that name whose labels hold all of
// these texts.
func (d *daemon) metric(t *testing.T, name string, labels ...string) (sum float64, err error) {
	t.Helper()
	m, err := d.Metrics(t.Context())
	return m.Sum(name, labels...), err
}

// counted complains until the counter of the process is at least 1.
func (d *daemon) counted(t *testing.T, name string, labels ...string) error {
	t.Helper()
	n, err := d.metric(t, name, labels...)
	if err == nil && n < 1 {
		err = fmt.Errorf("%s%v of %s is %v, want 1 or more", name, labels, d.Name(), n)
	}
	return err
}
