// Package browsertest gives tests a real Chromium, headless, which they drive by its DevTools
// protocol. The package manager installs it where it is missing; see package servertest for what
// may be left behind. The client of the protocol is a library of the suites: see test/suite/page.
package browsertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// startTimeout bounds a start, which takes a second on a machine that has nothing else to do.
const startTimeout = 2 * time.Minute

// endTimeout bounds the end of the processes that a browser has started.
const endTimeout = 30 * time.Second

// EnvURL names the environment variable that carries the address of a browser which is used in
// the place of one of our own, as ws://127.0.0.1:9222.
const EnvURL = "BROWSERTEST_URL"

var errNoProgram = errors.New("no Chromium (chromium) found")

// kind is Chromium. A killed browser has nothing to save.
var kind = servertest.Kind{
	Name: "Chromium", Prefix: "observerd-browsertest-", Users: []string{"nobody"}, Pid: "browser.pid", End: syscall.SIGKILL,
	Free: free,
}

// Sweep removes what tests that were killed have left of their browsers.
func Sweep() { kind.Sweep() }

func product() servertest.Product {
	packages := make(map[string]string)
	for _, manager := range []string{"apt-get", "dnf", "yum", "apk", "zypper", "pacman"} {
		packages[manager] = "chromium"
	}
	return servertest.Product{
		Name: "Chromium", Packages: packages, Missing: errNoProgram, Commands: []string{"chromium"},
		Folders: []string{"/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"},
		Instead: "put chromium into PATH, or set BROWSERTEST_BINDIR to its folder, or BROWSERTEST_URL to a browser that was started with --remote-debugging-port",
	}
}

// Browser is a Chromium of our own, with a profile that is removed with it.
type Browser struct {
	*servertest.Instance
	url string
}

// Start gives a test a browser of its own and removes it when the test ends.
func Start(t testing.TB) *Browser {
	t.Helper()
	return servertest.Give(t, kind.Name, servertest.InstallTimeout+startTimeout, Open)
}

// Open starts a browser. The caller must Close it.
func Open(ctx context.Context) (*Browser, error) { return open(ctx, "") }

func open(ctx context.Context, parent string) (*Browser, error) {
	program, err := product().Program(ctx, "BROWSERTEST_BINDIR", "chromium")
	if err != nil {
		return nil, err
	}
	instance, err := servertest.NewInstance(kind, parent)
	if err != nil {
		return nil, err
	}
	b := &Browser{Instance: instance}
	if err := b.start(ctx, program); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Browser) start(ctx context.Context, program string) error {
	data := b.Dir.Data()
	args := []string{
		"--headless", "--remote-debugging-port=0", "--user-data-dir=" + data,
		"--no-first-run", "--no-default-browser-check", "--password-store=basic", "--lang=en-US",
		"--disable-gpu", "--disable-extensions", "--disable-breakpad",
		// Without it a container's small /dev/shm breaks tabs.
		"--disable-dev-shm-usage",
		// The browser asks nobody for anything on its own.
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
	}
	if !b.namespaces(ctx) {
		// Debian's other sandbox is a program with root's rights. The pages are those of our own nodes.
		args = append(args, "--no-sandbox")
	}
	// The browser outlives ctx, which bounds its start alone.
	cmd := b.Command(context.WithoutCancel(ctx), syscall.SIGKILL, program, append(args, "about:blank")...)
	// It may write there alone. The path of its socket would be too long with that of the folder.
	cmd.Dir = data
	cmd.Env = append(cmd.Env, "HOME="+data, "TMPDIR=.")
	if err := b.Start(ctx, cmd, b.ping); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(data, kind.Pid), []byte(strconv.Itoa(b.Process.Pid())), 0o600)
}

// namespaces reports whether the browser's account may make those that Chromium's sandbox is made
// of: in containers, and where AppArmor forbids it, it may not.
func (b *Browser) namespaces(ctx context.Context) bool {
	return b.Command(ctx, syscall.SIGKILL, "unshare", "--user", "--pid", "--net", "--fork", "true").Run() == nil
}

// ping reads where the browser listens. It writes that once it does.
func (b *Browser) ping(context.Context) error {
	text, err := os.ReadFile(filepath.Join(b.Dir.Data(), "DevToolsActivePort"))
	if err != nil {
		return err
	}
	port, path, whole := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if b.Port, err = strconv.Atoi(port); err != nil || !whole {
		return fmt.Errorf("its file of the port says %q", text)
	}
	b.url = "ws://" + b.Address() + path
	return nil
}

// URL is where the browser takes commands of the DevTools protocol.
func (b *Browser) URL() string { return b.url }

// free ends what a killed browser has started and what still works in its folder: it would write
// there while the folder is removed, or make it anew.
func free(data string) error {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	return waittest.Within(ctx, endTimeout, func() error {
		folders, _ := filepath.Glob("/proc/[0-9]*/cwd") // The pattern is well formed.
		left := error(nil)
		for _, folder := range folders {
			if path, err := os.Readlink(folder); err != nil || path != data {
				continue // It is somebody else's, or has ended.
			}
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(folder)))
			if err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
				left = fmt.Errorf("process %d of the browser does not end", pid)
			}
		}
		return left
	})
}

// Runner is what [testing.M] and the result of [Wrap] have in common.
type Runner = servertest.Runner

// Wrap removes, after the tests of a package, the browser that they shared.
func Wrap(m Runner) Runner { return own.Wrap(m) }

// URL is the address of a browser that the tests of a binary share.
func URL(t testing.TB) string {
	t.Helper()
	return own.AdminURL(t)
}

// own is the browser of this test binary. It is the one variable of this package: tests have
// nothing else in common that could carry it.
var own = servertest.Shared[*Browser]{
	Name: kind.Name, Timeout: servertest.InstallTimeout + startTimeout,
	EnvURL: EnvURL, URL: (*Browser).URL, Open: Open,
}
