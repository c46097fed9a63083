//go:build nightly

package nightly_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// story is a host with systemd, from the first installation to the purge.
type story struct {
	system

	first, second packaged
}

func testBootedDebian(t *testing.T, s *story) {
	s.installs(t)
	s.reloads(t)
	s.refusesToReload(t)
	s.reloadsToADatabaseThatIsDown(t)
	s.takesCredentials(t)
	s.upgrades(t)
	s.staysStopped(t)
	s.isNotRestartedWithMistakes(t)
	s.comesBack(t)
	purged(t, s.system)
	if state := s.show(t, "LoadState"); state != "not-found" {
		t.Errorf("systemd still knows the unit: %s", state)
	}
}

// show returns a property of the service.
func (s *story) show(t *testing.T, property string) string {
	t.Helper()
	return s.do(t, "systemctl", "show", "--property="+property, "--value", "observerd.service")
}

// running asserts that the service is active and healthy, and returns its process.
func (s *story) running(t *testing.T) (pid string) {
	t.Helper()
	if state := s.show(t, "ActiveState"); state != "active" {
		t.Fatalf("the service is %s:\n%s", state, s.journal(t))
	}
	// The configuration names credentials, which root can read where systemd has put
	// them for the service.
	s.do(t, "env", "CREDENTIALS_DIRECTORY=/run/credentials/observerd.service",
		"observerd", "healthcheck", "--ready", "--config", configFile)
	pid = s.show(t, "MainPID")
	if owner := s.do(t, "stat", "--format=%U", "/proc/"+pid); owner != "observerd" {
		t.Errorf("the service runs as %s", owner)
	}
	return pid
}

func (s *story) journal(t *testing.T) string {
	t.Helper()
	return s.do(t, "journalctl", "--no-pager", "--lines=40", "--unit=observerd.service")
}

func (s *story) installs(t *testing.T) {
	s.do(t, "dpkg", "--install", s.put(t, s.first.deb))
	installed(t, s.system, firstVersion)
	s.running(t)
	if state := s.show(t, "UnitFileState"); state != "enabled" {
		t.Errorf("the service is %s; a fresh installation enables it", state)
	}
}

func (s *story) reloads(t *testing.T) {
	pid := s.running(t)
	feed(t, s.system, 20)
	s.write(t, configFile, observing(t, s.read(t, configFile), sampleURL))
	s.do(t, "systemctl", "reload", "observerd.service")
	moreEvents(t, s.system, "")
	if now := s.running(t); now != pid {
		t.Errorf("a reload has replaced process %s by %s", pid, now)
	}
}

// refusesToReload sees that systemctl fails when the node refuses its new
// configuration, each time, and that the node goes on.
func (s *story) refusesToReload(t *testing.T) {
	pid, right, before := s.running(t), s.read(t, configFile), s.read(t, eventsFile)
	const mistake, path = "\nnonsense: 1\n", "path: " + eventsFile
	if strings.Count(right, path) != 1 {
		t.Fatalf("the configuration has not one %q:\n%s", path, right)
	}
	for _, c := range []struct{ config, reason, exit string }{
		{right + mistake, "nonsense", "status=78/CONFIG"},
		{strings.Replace(right, path, "path: /etc/events.jsonl", 1), "/etc cannot be written", "status=77/NOPERM"},
		{right + mistake, "nonsense", "status=78/CONFIG"},
	} {
		refusals, exits := s.logged(t, "Reload refused", c.reason), s.logged(t, "Control process exited", c.exit)
		s.write(t, configFile, c.config)
		if out, err := s.try(t, "systemctl", "reload", "observerd.service"); err == nil {
			t.Errorf("systemctl reload succeeds, and %s is in the configuration: %s", c.reason, out)
		}
		until(t, "the journal to say why", func() error {
			if r, e := s.logged(t, "Reload refused", c.reason), s.logged(t, "Control process exited", c.exit); r != refusals+1 || e != exits+1 {
				return fmt.Errorf("%d new lines with the reason, %d with %s", r-refusals, e-exits, c.exit)
			}
			return nil
		})
		if state, now := s.show(t, "ActiveState"), s.show(t, "MainPID"); state != "active" || now != pid {
			t.Errorf("after a reload that was refused the service is %s, process %s; it was %s", state, now, pid)
		}
		feed(t, s.system, 100)
		before = moreEvents(t, s.system, before)
	}
	s.write(t, configFile, right)
	s.do(t, "systemctl", "reload", "observerd.service")
	s.running(t)
}

// reloadsToADatabaseThatIsDown sees that systemctl fails within its time when the
// new database does not answer, and that nothing holds back the reload that names
// another one.
func (s *story) reloadsToADatabaseThatIsDown(t *testing.T) {
	pid, right, before := s.running(t), s.read(t, configFile), s.read(t, eventsFile)
	const database = "url: sqlite:" + stateDir + "/observerd.db"
	if strings.Count(right, database) != 1 {
		t.Fatalf("the configuration has not one %q:\n%s", database, right)
	}
	s.write(t, configFile, strings.Replace(right, database, "url: postgres://nobody@127.0.0.1:1/observerd?sslmode=disable", 1))
	if out, err := s.try(t, "systemctl", "reload", "observerd.service"); err == nil {
		t.Errorf("systemctl reload succeeds, and the database is down: %s", out)
	}
	if state := s.show(t, "ActiveState"); state != "active" {
		t.Errorf("the service is %s while it waits for its database", state)
	}
	until(t, "the journal to say why", func() error {
		if s.logged(t, "Control process exited", "status=69/UNAVAILABLE") != 1 || s.logged(t, "the node waits for its coordination database") == 0 {
			return errors.New(s.journal(t))
		}
		return nil
	})
	s.write(t, configFile, right)
	s.do(t, "systemctl", "reload", "observerd.service")
	if now := s.running(t); now != pid {
		t.Errorf("process %s has taken the place of %s", now, pid)
	}
	feed(t, s.system, 100)
	moreEvents(t, s.system, before)
}

// logged counts the lines of the journal that have all these parts.
func (s *story) logged(t *testing.T, parts ...string) (n int) {
	t.Helper()
	for line := range strings.Lines(s.do(t, "journalctl", "--no-pager", "--output=cat", "--unit=observerd.service")) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			n++
		}
	}
	return n
}

func (s *story) takesCredentials(t *testing.T) {
	before := s.read(t, eventsFile)
	secret := "/etc/observerd/credentials/shop.url"
	if err := os.WriteFile(s.path(secret), []byte("sqlite:"+sampleFile+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := s.read(t, configFile)
	// A variable of a source is right only with the file that has the source.
	if err := os.WriteFile(s.path("/etc/observerd/observerd.env"), []byte("OBSERVERD_SOURCES_SHOP_QUERY_TIMEOUT=45s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.write(t, configFile, strings.Replace(config, sampleURL, "url-file: ${CREDENTIALS_DIRECTORY}/secret_shop.url", 1))
	s.do(t, "systemctl", "restart", "observerd.service")
	s.running(t)
	feed(t, s.system, 100)
	before = moreEvents(t, s.system, before)

	// The process that reloads cannot read credentials under every systemd.
	s.do(t, "systemctl", "reload", "observerd.service")
	s.running(t)
	feed(t, s.system, 100)
	moreEvents(t, s.system, before)
}

func (s *story) upgrades(t *testing.T) {
	pid, configured, before := s.running(t), s.read(t, configFile), s.read(t, eventsFile)
	s.do(t, "dpkg", "--force-confdef", "--force-confold", "--install", s.put(t, s.second.deb))
	upgraded(t, s.system, configured)
	if now := s.running(t); now == pid {
		t.Errorf("an upgrade has left process %s of the old version running", pid)
	}
	feed(t, s.system, 100)
	moreEvents(t, s.system, before)
}

// staysStopped sees that an upgrade starts nothing that somebody has stopped.
func (s *story) staysStopped(t *testing.T) {
	s.do(t, "systemctl", "stop", "observerd.service")
	if result, code := s.show(t, "Result"), s.show(t, "ExecMainStatus"); result != "success" || code != "0" {
		t.Errorf("the service has stopped with %s, exit code %s:\n%s", result, code, s.journal(t))
	}
	s.do(t, "dpkg", "--force-confdef", "--force-confold", "--install", s.put(t, s.second.deb))
	if state := s.show(t, "ActiveState"); state != "inactive" {
		t.Errorf("the service was stopped, and an upgrade has made it %s", state)
	}
}

// isNotRestartedWithMistakes sees that a wrong configuration ends the service,
// once, with what is wrong; and that dpkg can live with that.
func (s *story) isNotRestartedWithMistakes(t *testing.T) {
	right := s.read(t, configFile)
	s.write(t, configFile, right+"\nnonsense: 1\n")
	if out, err := s.try(t, "systemctl", "start", "observerd.service"); err == nil {
		t.Errorf("the service starts with a wrong configuration: %s", out)
	}
	until(t, "the service to give up", func() error {
		if state := s.show(t, "ActiveState"); state != "failed" {
			return errors.New(state)
		}
		return nil
	})
	if code, restarts := s.show(t, "ExecMainStatus"), s.show(t, "NRestarts"); code != "78" || restarts != "0" {
		t.Errorf("exit code %s, restarted %s times; want 78, never:\n%s", code, restarts, s.journal(t))
	}
	if text := s.show(t, "StatusText"); !strings.Contains(text, "nonsense") {
		t.Errorf("the status line is %q; it does not name the mistake", text)
	}
	s.write(t, configFile, right)
}

// comesBack removes the package and installs it again, with what was kept.
func (s *story) comesBack(t *testing.T) {
	s.do(t, "systemctl", "start", "observerd.service")
	pid, before := s.running(t), s.read(t, eventsFile)
	removed(t, s.system, s.read(t, configFile))
	if _, err := s.try(t, "test", "-e", "/proc/"+pid); err == nil {
		t.Error("dpkg --remove has left the service running")
	}
	s.do(t, "dpkg", "--force-confdef", "--force-confold", "--install", s.put(t, s.second.deb))
	s.running(t)
	feed(t, s.system, 100)
	moreEvents(t, s.system, before)
	removed(t, s.system, s.read(t, configFile))
}
