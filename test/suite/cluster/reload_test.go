package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// reloads is how often each node of [TestReloadsLoseAndRepeatNothing] gets
// another configuration.
const reloads = 12

// TestReloadsLoseAndRepeatNothing reloads both nodes of a cluster again and again
// while the source moves. An observer is switched off and on in their
// configurations, and signals come faster than a reload takes.
func TestReloadsLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, m memory) {
		source := openPostgres(t)
		h := newHost(t, m, source.url)
		nodes := []*daemon{h.start(t, "a", settings{}).ready(t), h.start(t, "b", settings{}).ready(t)}
		quiet := source.busy(t)
		for n := range reloads {
			for i, d := range nodes {
				h.switchTasks(t, d.Name(), n%2 != i)
				begun, ready := d.Log.Count("Reloading the configuration"), d.Log.Count(`"msg":"Ready"`)
				d.signal(t, syscall.SIGHUP)
				switch n % 3 {
				case 0: // The next one may come before this one is done.
				case 1: // The next one comes while this one is under way.
					eventually(t, func() error { return more(d.Log.Count("Reloading the configuration"), begun) })
					d.signal(t, syscall.SIGHUP)
				case 2: // It works for a while.
					eventually(t, func() error { return more(d.Log.Count(`"msg":"Ready"`), ready) })
					grows(t, m)
				}
			}
		}
		for _, d := range nodes {
			h.switchTasks(t, d.Name(), true)
			d.signal(t, syscall.SIGHUP)
		}
		quiet()
		checkHistory(t, m, h.sink(), source.rows(t))
		for _, d := range nodes {
			if n := d.Log.Count("Configuration reloaded"); n < reloads/2 {
				t.Errorf("%s: %d reloads took effect", d.Name(), n)
			}
			if n := d.Log.Count("did not stop in time") + d.Log.Count("Reload refused"); n > 0 {
				t.Errorf("%s: %d reloads went wrong", d.Name(), n)
			}
		}
		for _, d := range nodes {
			d.stops(t)
		}
		checkHistory(t, m, h.sink(), source.rows(t))
		if n, err := m.number(t, `SELECT count(*) FROM obs_node`); err != nil || n != 0 {
			t.Errorf("%d nodes count as alive: %v", n, err)
		}
		for _, name := range []string{"a", "b"} {
			if n, err := m.held(t, name); err != nil || n != 0 {
				t.Errorf("%s has left %d locks: %v", name, n, err)
			}
		}
	})
}

func more(now, before int) error {
	if now <= before {
		return fmt.Errorf("%d times, as before", now)
	}
	return nil
}

// switchTasks switches the observer of the tasks of a node off or on. The file is
// replaced at once: a reload must not read half of it.
func (h host) switchTasks(t *testing.T, node string, on bool) {
	t.Helper()
	path := filepath.Join(h.Folder, node, "config.yaml")
	text, err := os.ReadFile(path)
	must(t, err)
	plain := regexp.MustCompile(`enabled: \w+, type: wes`).ReplaceAllString(string(text), "type: wes")
	replaced := strings.Replace(plain, "type: wes", fmt.Sprintf("enabled: %t, type: wes", on), 1)
	must(t, os.WriteFile(path+".new", []byte(replaced), 0o600))
	must(t, os.Rename(path+".new", path))
}
