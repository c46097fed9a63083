//go:build nightly

package nightly_test

import (
	"strings"
	"testing"
)

// testRPM installs the rpm with the rpm of a Debian, which knows none of the
// packages there: it is told not to look for /bin/sh.
func testRPM(t *testing.T, d system, first, second packaged) {
	file := d.put(t, first.rpm)
	rpmFiles(t, d.do(t, "rpm", "--query", "--package", file, "--queryformat",
		`[%{FILEMODES:perms} %{FILEUSERNAME}:%{FILEGROUPNAME} <%{FILEFLAGS:fflags}> %{FILENAMES}\n]`))
	if needs := d.do(t, "rpm", "--query", "--package", "--requires", file); strings.Contains(needs, ".so") {
		t.Errorf("the rpm needs libraries:\n%s", needs)
	}

	d.do(t, "rpm", "--install", "--nodeps", file)
	installed(t, d, firstVersion)
	if out := d.do(t, "rpm", "--verify", "--nodeps", "observerd"); out != "" {
		t.Errorf("rpm --verify: %s", out)
	}
	configured := observing(t, d.read(t, configFile), sampleURL)
	d.write(t, configFile, configured)
	feed(t, d, 20)
	stop := runNode(t, d)
	events := moreEvents(t, d, "")
	stop()

	d.do(t, "rpm", "--upgrade", "--nodeps", d.put(t, second.rpm))
	installed(t, d, secondVersion)
	if got := d.read(t, configFile); got != configured {
		t.Errorf("the upgrade has changed the configuration to:\n%s", got)
	}
	if got := d.read(t, configFile+".rpmnew"); !strings.HasSuffix(got, newDefault) {
		t.Errorf("the new default is not beside it, but:\n%s", got)
	}
	feed(t, d, 200)
	stop = runNode(t, d)
	events = moreEvents(t, d, events)
	stop()

	d.do(t, "rpm", "--erase", "observerd")
	if d.has(t, "/usr/bin/observerd") {
		t.Error("the program is still there after rpm --erase")
	}
	if d.read(t, configFile+".rpmsave") != configured || d.read(t, eventsFile) != events {
		t.Error("rpm --erase has not kept the configuration and the state")
	}
}

// rpmFiles asserts what is particular to rpm: which file is a configuration that
// an upgrade does not replace.
func rpmFiles(t *testing.T, listed string) {
	t.Helper()
	files := make(map[string]string)
	for line := range strings.Lines(listed) {
		at := strings.LastIndex(line, " ")
		files[strings.TrimSpace(line[at:])] = line[:at]
	}
	for name, want := range map[string]string{
		configFile:           "-rw-r----- root:observerd <cn>",
		stateDir:             "drwx------ observerd:observerd <>",
		"/usr/bin/observerd": "-rwxr-xr-x root:root <>",
		"/usr/lib/systemd/system/observerd.service": "-rw-r--r-- root:root <>",
	} {
		if got := files[name]; got != want {
			t.Errorf("%s is %q; want %q", name, got, want)
		}
	}
}
