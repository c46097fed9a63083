package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// abroad is a host whose source has accounts of its own.
type abroad struct{ host }

// start runs a node that knows the password.
func (a abroad) start(t *testing.T, name, password string) *daemon {
	t.Helper()
	a.access = "password-file: password, fetch-size: 4, query-timeout: 20s"
	folder := filepath.Join(a.Folder, name)
	must(t, os.MkdirAll(folder, 0o700))
	must(t, os.WriteFile(filepath.Join(folder, "password"), []byte(password), 0o600))
	return a.host.start(t, name, settings{})
}

// pair runs two nodes, and returns them when both are ready.
func (a abroad) pair(t *testing.T, password string) map[string]*daemon {
	t.Helper()
	nodes := map[string]*daemon{"a": a.start(t, "a", password), "b": a.start(t, "b", password)}
	for _, d := range nodes {
		d.ready(t)
	}
	return nodes
}

// says complains unless `observerd status` has all of these texts in one line.
func (a abroad) says(t *testing.T, parts ...string) error {
	t.Helper()
	text, err := a.status(t, "a")
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		said := true
		for _, part := range parts {
			said = said && strings.Contains(line, part)
		}
		if said {
			return nil
		}
	}
	return fmt.Errorf("no line has all of %q:\n%s", parts, text)
}

// told waits until these keys of a stream are in the event log.
func (m memory) told(t *testing.T, stream string, keys ...string) {
	t.Helper()
	eventually(t, func() error {
		log, err := m.logged(t)
		if err != nil {
			return err
		}
		rows := lastStatus(log, stream)
		for _, key := range keys {
			if _, ok := rows[key]; !ok {
				return fmt.Errorf("%s: nothing was said of %s yet", stream, key)
			}
		}
		return nil
	})
}

// says waits until the last event of a row has that status.
func (m memory) says(t *testing.T, stream, key, status string) {
	t.Helper()
	eventually(t, func() error {
		log, err := m.logged(t)
		if err != nil {
			return err
		}
		if said := lastStatus(log, stream)[key]; said != status {
			return fmt.Errorf("%s: the last event of %s says %q, not %q", stream, key, said, status)
		}
		return nil
	})
}

// errFree reports a lock that nobody holds.
var errFree = errors.New("nobody holds the lock")

// pollsNow returns the node that holds the lock of a type.
func (m memory) pollsNow(t *testing.T, typ string) (node string, err error) {
	t.Helper()
	err = m.visit(t, `
		SELECT o.node FROM int_lock l JOIN obs_lock o ON o.term = l.client_id
		 WHERE l.lock_key LIKE '`+typ+`-observer-poll%'`, func(scan func(...any) error) error { return scan(&node) })
	if err == nil && node == "" {
		err = errFree
	}
	return node, err
}

// turns is how many turns the nodes have taken together, of all types.
func turns(t *testing.T, nodes map[string]*daemon) (sum float64, err error) {
	t.Helper()
	for _, d := range nodes {
		n, err := d.metric(t, "scheduler_observer_lock_acquired_total")
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// pass waits until the nodes have taken so many turns more.
func pass(t *testing.T, nodes map[string]*daemon, more float64) {
	t.Helper()
	before, err := turns(t, nodes)
	must(t, err)
	eventually(t, func() error {
		now, err := turns(t, nodes)
		if err == nil && now < before+more {
			err = fmt.Errorf("%v of %v turns", now-before, more)
		}
		return err
	})
}
