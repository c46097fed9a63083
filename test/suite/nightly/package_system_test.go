//go:build nightly

package nightly_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

const (
	// soon bounds what must happen at once, on a machine that has much else to do.
	soon = 2 * time.Minute
	// slow bounds what downloads or compiles.
	slow = 30 * time.Minute
	// envMirror names the Debian mirror, where apt's own is not the one.
	envMirror = "OBSERVERD_DEBIAN_MIRROR"
)

// system is a whole Debian in a folder.
type system struct {
	dir string
	// enter are the words before a command that run it in there.
	enter []string
}

// needRoot ends the test of somebody who may not make a system.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes a Debian in a folder and installs packages into it, for which it must be root")
	}
}

// tool makes sure that there is a program, and installs its Debian package where
// there is none.
func tool(t *testing.T, name, debianPackage string) {
	t.Helper()
	missing := errors.New("no " + name + " found")
	ctx, cancel := context.WithTimeout(t.Context(), servertest.InstallTimeout)
	defer cancel()
	_, err := servertest.Product{
		Name: name, Packages: map[string]string{"apt-get": debianPackage}, Missing: missing,
		Instead: "run this test on a Debian, as root",
		Find: func(context.Context) (string, error) {
			path, err := exec.LookPath(name)
			if err != nil {
				return "", missing
			}
			return filepath.Dir(path), nil
		},
	}.Programs(ctx)
	if err != nil {
		t.Fatal(err)
	}
}

// newSystem makes the smallest Debian there is: without systemd, and without
// anything that is not required.
func newSystem(t *testing.T) system {
	t.Helper()
	tool(t, "debootstrap", "debootstrap")
	release, mirror := debianSources(t)
	dir := filepath.Join(t.TempDir(), "debian")
	host(t, slow, "debootstrap", "--variant=minbase", release, dir, mirror)
	return system{dir: dir, enter: []string{"chroot", dir}}
}

// copied returns a copy of the system, to be spoilt.
func (s system) copied(t *testing.T) system {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "debian")
	host(t, slow, "cp", "--archive", "--reflink=auto", s.dir, dir)
	return system{dir: dir, enter: []string{"chroot", dir}}
}

// install brings further Debian packages into the system.
func (s system) install(t *testing.T, names ...string) {
	t.Helper()
	s.within(t, slow, "apt-get", "update", "-qq")
	s.within(t, slow, append([]string{"apt-get", "install", "-y", "-qq", "--no-install-recommends"}, names...)...)
}

// debianSources are the release and the mirror that this machine uses itself.
func debianSources(t *testing.T) (release, mirror string) {
	t.Helper()
	text := host(t, soon, "sh", "-c", `. /etc/os-release && echo "$VERSION_CODENAME"`)
	if release = strings.TrimSpace(text); release == "" {
		t.Fatal("/etc/os-release has no VERSION_CODENAME: this test needs a Debian or one of its kind")
	}
	if mirror = os.Getenv(envMirror); mirror != "" {
		return release, mirror
	}
	targets := host(t, soon, "apt-get", "indextargets", "--format", "$(CODENAME) $(COMPONENT) $(REPO_URI)", "Identifier: Packages")
	for line := range strings.Lines(targets) {
		if uri, ok := strings.CutPrefix(strings.TrimSpace(line), release+" main "); ok {
			return release, uri
		}
	}
	return release, "http://deb.debian.org/debian"
}

// host runs a command on this machine and returns its stdout.
func host(t *testing.T, limit time.Duration, words ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	out, err := output(exec.CommandContext(ctx, words[0], words[1:]...))
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	return out
}

// output runs a command; the error of one that fails has all that it said.
func output(cmd *exec.Cmd) (string, error) {
	var stdout, both bytes.Buffer
	cmd.Stdout, cmd.Stderr = writers{&stdout, &both}, &both
	cmd.WaitDelay = time.Minute
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%w\n%s", err, both.String())
	}
	return stdout.String(), nil
}

// writers writes to both buffers.
type writers struct{ one, other *bytes.Buffer }

func (w writers) Write(p []byte) (int, error) {
	w.one.Write(p)
	return w.other.Write(p)
}

// command is one that will run in the system, with nothing of this machine's
// environment.
func (s system) command(ctx context.Context, words ...string) *exec.Cmd {
	words = append(append([]string{}, s.enter...), words...)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = "/"
	cmd.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=/root",
		"DEBIAN_FRONTEND=noninteractive", "SYSTEMD_PAGER=", "NO_COLOR=1",
	}
	return cmd
}

// try runs a command in the system and returns its stdout.
func (s system) try(t *testing.T, words ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	return output(s.command(ctx, words...))
}

// do runs a command in the system that must succeed, and returns its stdout
// without the blanks around it.
func (s system) do(t *testing.T, words ...string) string {
	t.Helper()
	return s.within(t, soon, words...)
}

func (s system) within(t *testing.T, limit time.Duration, words ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	out, err := output(s.command(ctx, words...))
	if err != nil {
		t.Fatalf("in the system: %s: %v", strings.Join(words, " "), err)
	}
	return strings.TrimSpace(out)
}

// path is where a file of the system lies on this machine.
func (s system) path(name string) string { return filepath.Join(s.dir, name) }

func (s system) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(s.path(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// write changes a file of the system; its owner and mode stay.
func (s system) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// has reports whether the system has a file or folder of that name.
func (s system) has(t *testing.T, name string) bool {
	t.Helper()
	_, err := os.Lstat(s.path(name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return err == nil
}

// put copies a file of this machine into the system and returns its name there.
func (s system) put(t *testing.T, file string) string {
	t.Helper()
	name := filepath.Join("/srv", filepath.Base(file))
	host(t, soon, "cp", file, s.path(name))
	return name
}

// boot starts the system's own systemd in a container with a network of its own,
// which ends with the test. Commands run in the container from then on.
func (s *system) boot(t *testing.T) {
	t.Helper()
	tool(t, "systemd-nspawn", "systemd-container")
	machine := fmt.Sprintf("observerd-nightly-%d", os.Getpid())
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "systemd-nspawn", "--quiet", "--boot", "--directory="+s.dir, "--machine="+machine,
		"--register=no", "--keep-unit", "--private-network", "--link-journal=no", "--console=pipe")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = servertest.Account{}.Attributes(syscall.SIGKILL)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = soon
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cancel()
		// It says how systemd was ended, which is of no interest.
		if err := <-ended; err != nil && cmd.ProcessState == nil {
			t.Error(err)
		}
		// Empty, and systemd-nspawn leaves it.
		if err := os.Remove(filepath.Join("/run/systemd/nspawn/propagate", machine)); err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
	})
	until(t, "systemd to run in the container", func() error {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("systemd-nspawn ended, so this machine cannot run systemd in a container: %v\n%s", err, log.String())
		default:
		}
		first, err := onlyChild(cmd.Process.Pid)
		if err != nil {
			return err
		}
		s.enter = []string{"nsenter", "--target", strconv.Itoa(first), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup"}
		state, err := s.try(t, "systemctl", "is-system-running")
		if state = strings.TrimSpace(state); state != "running" && state != "degraded" {
			return fmt.Errorf("it is %q: %w", state, err)
		}
		return nil
	})
}

// onlyChild returns the process that another one has started.
func onlyChild(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// until waits for the check to find nothing wrong.
func until(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := waittest.Within(t.Context(), soon, check); err != nil {
		t.Fatalf("waited for %s: %v", what, err)
	}
}
