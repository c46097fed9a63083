package systemd_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/test/kit/servertest"
)

// unit is what the packages ship.
const unit = "../../deploy/systemd/observerd.service"

// installed is where the unit expects the program.
const installed = "/usr/bin/observerd"

var errNoAnalyze = errors.New("no systemd-analyze found")

// analyze runs systemd-analyze and returns all that it says. It is installed
// first where there is none; no systemd has to run for it.
func analyze(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	program(t, "systemd-analyze", servertest.Product{
		Name: "systemd", Packages: map[string]string{
			"apt-get": "systemd", "dnf": "systemd", "yum": "systemd", "zypper": "systemd", "pacman": "systemd",
		},
		Missing: errNoAnalyze, Instead: "put systemd-analyze into PATH",
	})
	cmd := exec.CommandContext(t.Context(), "systemd-analyze", args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "SYSTEMD_PAGER=", "NO_COLOR=1")
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err = cmd.Run()
	return both.String(), err
}

// program makes sure that there is a program of that name.
func program(t *testing.T, name string, p servertest.Product) {
	t.Helper()
	p.Find = func(context.Context) (string, error) {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", p.Missing
		}
		return filepath.Dir(path), nil
	}
	if _, err := p.Programs(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestUnitIsRight asks systemd itself, with the program of these tests in the
// place of the one that is installed.
func TestUnitIsRight(t *testing.T) {
	t.Parallel()
	text := read(t)
	for _, setting := range []string{"ExecStart", "ExecReload"} {
		if n := strings.Count(text, "\n"+setting+"="+installed+" "); n != 1 {
			t.Fatalf("the unit has %s of %s %d times", setting, installed, n)
		}
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	output, err := analyze(t, "verify", write(t, strings.ReplaceAll(text, installed, own)))
	if err != nil || output != "" {
		t.Errorf("systemd-analyze verify: %v\n%s", err, output)
	}
}

// TestVerifySeesMistakes makes sure that no output means what it should.
func TestVerifySeesMistakes(t *testing.T) {
	t.Parallel()
	output, err := analyze(t, "verify", write(t, strings.Replace(read(t), "WatchdogSec=", "WatchdogSecs=", 1)))
	if !strings.Contains(output, "WatchdogSecs") {
		t.Errorf("a key that does not exist: %v\n%s", err, output)
	}
}

// TestUnitIsHardened holds the exposure that systemd computes to 1.5 of 10.
func TestUnitIsHardened(t *testing.T) {
	t.Parallel()
	output, err := analyze(t, "security", "--offline=true", "--threshold=15", "--no-pager", write(t, read(t)))
	if err != nil || !strings.Contains(output, "Overall exposure level") {
		t.Errorf("systemd-analyze security: %v\n%s", err, output)
	}
	loose := strings.Replace(read(t), "NoNewPrivileges=yes", "NoNewPrivileges=no", 1)
	loose = strings.Replace(loose, "ProtectSystem=strict", "ProtectSystem=no", 1)
	loose = strings.Replace(loose, "SystemCallFilter=@system-service", "", 1)
	if output, err := analyze(t, "security", "--offline=true", "--threshold=15", "--no-pager", write(t, loose)); err == nil {
		t.Errorf("a unit that is not hardened passes:\n%s", output)
	}
}

// TestUnitSpeaksWithTheProgram holds the settings on which the program and the
// manager have to agree.
func TestUnitSpeaksWithTheProgram(t *testing.T) {
	t.Parallel()
	lines := make(map[string]bool)
	for line := range strings.Lines(read(t)) {
		lines[strings.TrimSpace(line)] = true
	}
	for _, want := range []string{
		"Type=notify", "NotifyAccess=main", "WatchdogSec=30s", "ExecReload=/usr/bin/observerd reload --pid $MAINPID", "Restart=on-failure",
		"RestartPreventExitStatus=77 78", "KillMode=mixed", "TimeoutStartSec=90s", "TimeoutStopSec=45s", "User=observerd",
		"Environment=OBSERVERD_HTTP_SOCKET=%t/observerd/http.sock", "LoadCredential=secret:/etc/observerd/credentials",
	} {
		if !lines[want] {
			t.Errorf("the unit lacks %s", want)
		}
	}
}

func read(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(unit))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestUserOfTheUnit lets systemd make the user in a tree of its own, without
// doing it.
func TestUserOfTheUnit(t *testing.T) {
	t.Parallel()
	if _, err := analyze(t, "--version"); err != nil { // The package has both.
		t.Fatal(err)
	}
	file, err := filepath.Abs("../../deploy/systemd/observerd.sysusers")
	if err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), "systemd-sysusers", "--dry-run", "--root="+t.TempDir(), file).CombinedOutput()
	if err != nil || !strings.Contains(string(output), "Creating user 'observerd' (observerd daemon)") {
		t.Errorf("systemd-sysusers: %v\n%s", err, output)
	}
}
