//go:build nightly

package nightly_test

import (
	"debug/elf"
	"os"
	"strings"
	"testing"
)

// The versions of the packages: the one that is installed, and the one that it is
// upgraded to.
const (
	firstVersion  = "1.0.0"
	secondVersion = "1.1.0"
)

// newDefault is what the configuration has more that the second version brings.
const newDefault = "\n# This came with version " + secondVersion + ".\n"

const (
	configFile = "/etc/observerd/config.yaml"
	stateDir   = "/var/lib/observerd"
	eventsFile = stateDir + "/events.jsonl"
)

// TestPackages builds the packages as `make packages` does, and installs, runs,
// upgrades and removes them in systems of their own.
func TestPackages(t *testing.T) {
	needRoot(t)
	first, second := buildPackages(t)
	if t.Failed() {
		return
	}
	base := newSystem(t)
	t.Run("deb without systemd", func(t *testing.T) { testMinimalDebian(t, base.copied(t), first, second) })
	t.Run("deb under systemd", func(t *testing.T) {
		d := base.copied(t)
		d.install(t, "systemd", "systemd-sysv", "dbus")
		d.boot(t)
		testBootedDebian(t, &story{system: d, first: first, second: second})
	})
	t.Run("rpm", func(t *testing.T) {
		d := base.copied(t)
		d.install(t, "rpm", "systemd-standalone-sysusers")
		testRPM(t, d, first, second)
	})
}

// buildPackages builds the first version twice, from two clones in two folders,
// by two users who have nothing in common: neither a cache, nor a umask, nor a
// zone. Then it builds the second.
func buildPackages(t *testing.T) (first, second packaged) {
	t.Helper()
	one, other := newCheckout(t, "022"), newCheckout(t, "077", "GOCACHE="+t.TempDir(), "TZ=Asia/Tokyo")
	commit := one.git(t, "rev-parse", "HEAD")
	if got := other.git(t, "rev-parse", "HEAD"); got != commit {
		t.Fatalf("the clones are commits %s and %s", commit, got)
	}
	first = one.packages(t, firstVersion, "amd64", "arm64")
	again := other.packages(t, firstVersion)
	same(t, first.binary, again.binary)
	same(t, first.deb, again.deb)
	same(t, first.rpm, again.rpm)
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		static(t, one.dir+"/bin/packages/stage/"+arch+"/observerd", machine)
	}
	stamped(t, host(t, soon, first.binary, "version", "-o", "json"), firstVersion, commit, "2026-01-02T03:04:05Z")

	file := other.dir + "/deploy/packages/config.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, newDefault...), 0o600); err != nil {
		t.Fatal(err)
	}
	other.commit(t, "a new default")
	return first, other.packages(t, secondVersion)
}

// testMinimalDebian is a host without systemd, where somebody starts the daemon.
func testMinimalDebian(t *testing.T, d system, first, second packaged) {
	if d.has(t, "/usr/bin/systemd-sysusers") {
		t.Fatal("the smallest Debian has systemd-sysusers, so this test does not see how the user is made without it")
	}
	d.do(t, "dpkg", "--install", d.put(t, first.deb))
	installed(t, d, firstVersion)
	if out := d.do(t, "dpkg", "--verify", "observerd"); out != "" {
		t.Errorf("dpkg --verify: %s", out)
	}
	d.do(t, "observerd", "validate", "--config", configFile)

	stop := runNode(t, d)
	stop()
	d.write(t, configFile, observing(t, d.read(t, configFile), sampleURL))
	feed(t, d, 20)
	stop = runNode(t, d)
	before := moreEvents(t, d, "")
	stop()

	configured := d.read(t, configFile)
	d.do(t, "dpkg", "--force-confdef", "--force-confold", "--install", d.put(t, second.deb))
	upgraded(t, d, configured)
	feed(t, d, 200)
	stop = runNode(t, d)
	moreEvents(t, d, before)
	stop()
	removed(t, d, configured)
	purged(t, d)
}

// installed asserts what the package has brought, and to whom it belongs.
func installed(t *testing.T, d system, version string) {
	t.Helper()
	fields := strings.Split(d.do(t, "getent", "passwd", "observerd"), ":")
	if len(fields) != 7 || fields[4] != "observerd daemon" || fields[5] != stateDir || !strings.HasSuffix(fields[6], "/nologin") {
		t.Errorf("the user is %q", fields)
	}
	for name, want := range map[string]string{
		"/usr/bin/observerd":         "-rwxr-xr-x root:root",
		"/etc/observerd":             "drwxr-xr-x root:root",
		configFile:                   "-rw-r----- root:observerd",
		"/etc/observerd/credentials": "drwx------ root:root",
		stateDir:                     "drwx------ observerd:observerd",
		"/usr/lib/systemd/system/observerd.service":         "-rw-r--r-- root:root",
		"/usr/lib/sysusers.d/observerd.conf":                "-rw-r--r-- root:root",
		"/usr/share/bash-completion/completions/observerd":  "-rw-r--r-- root:root",
		"/usr/share/man/man1/observerd.1.gz":                "-rw-r--r-- root:root",
		"/usr/share/observerd/prometheus/alerts.yaml":       "-rw-r--r-- root:root",
		"/usr/share/observerd/grafana/observer-health.json": "-rw-r--r-- root:root",
		"/usr/share/observerd/sql/postgres.sql":             "-rw-r--r-- root:root",
		"/usr/share/doc/observerd/docs/configuration.md":    "-rw-r--r-- root:root",
		"/usr/share/doc/observerd/copyright":                "-rw-r--r-- root:root",
	} {
		if got := d.do(t, "stat", "--format=%A %U:%G", name); got != want {
			t.Errorf("%s is %s; want %s", name, got, want)
		}
	}
	if got := d.do(t, "observerd", "version"); !strings.HasPrefix(got, "observerd "+version+" (") {
		t.Errorf("observerd version says %s; want %s", got, version)
	}
}

// upgraded asserts that the second version is there, with the configuration that
// somebody has written.
func upgraded(t *testing.T, d system, configured string) {
	t.Helper()
	installed(t, d, secondVersion)
	if got := d.read(t, configFile); got != configured {
		t.Errorf("the upgrade has changed the configuration to:\n%s", got)
	}
	if got := d.read(t, configFile+".dpkg-dist"); !strings.HasSuffix(got, newDefault) {
		t.Errorf("the new default is not beside it, but:\n%s", got)
	}
}

// removed removes the package, and asserts that what it is not made of stays.
func removed(t *testing.T, d system, configured string) {
	t.Helper()
	events := d.read(t, eventsFile)
	d.do(t, "dpkg", "--remove", "observerd")
	if d.has(t, "/usr/bin/observerd") || d.has(t, "/usr/lib/systemd/system/observerd.service") {
		t.Error("the program or its unit is still there after dpkg --remove")
	}
	if d.read(t, configFile) != configured || d.read(t, eventsFile) != events || !d.has(t, stateDir+"/observerd.db") {
		t.Error("dpkg --remove has touched the configuration or the state")
	}
}

// purged purges the package, and asserts that it says what it removes, that
// nothing is left, and that the user is.
func purged(t *testing.T, d system) {
	t.Helper()
	d.do(t, "sh", "-c", "rm /srv/observerd*")
	out := d.do(t, "dpkg", "--purge", "observerd")
	for _, want := range []string{"removes /etc/observerd", "removes " + stateDir, "userdel observerd"} {
		if !strings.Contains(out, want) {
			t.Errorf("dpkg --purge does not say %q, but:\n%s", want, out)
		}
	}
	if left := d.do(t, "find", "/", "-xdev", "-name", "*observerd*", "-not", "-path", "/proc/*"); left != "" {
		t.Errorf("dpkg --purge has left:\n%s", left)
	}
	d.do(t, "getent", "passwd", "observerd")
}
