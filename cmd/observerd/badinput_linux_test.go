package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/servertest"
)

// TestBadInput starts the program with what it cannot work with, as root where
// the test has it and as a user without rights. It must end with a code that
// says whether to fix the configuration or a right, and stderr and the status
// line of the service manager must say which key, what and how, without a
// secret.
func TestBadInput(t *testing.T) {
	t.Parallel()
	for _, table := range []map[string]badInput{badSecrets, exposedSecrets, badPlaces, badAddresses} {
		for name, input := range table {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				t.Run("without rights", func(t *testing.T) {
					t.Parallel()
					input.refused(t, false)
				})
				if os.Geteuid() == 0 && !input.forRoot {
					t.Run("as root", func(t *testing.T) {
						t.Parallel()
						input.refused(t, true)
					})
				}
			})
		}
	}
}

func (b badInput) refused(t *testing.T, root bool) {
	t.Helper()
	f := b.folder(t, root)
	code, output := f.run(t, "run")
	if code != b.code {
		t.Errorf("exit code %d, want %d", code, b.code)
	}
	status := f.status(t)
	if !strings.HasPrefix(status, fmt.Sprintf("STATUS=Ended with exit code %d: ", b.code)) {
		t.Errorf("status line %q", status)
	}
	for _, words := range b.says {
		words = f.fill(words)
		if !strings.Contains(output, words) {
			t.Errorf("%q is missing in:\n%s", words, output)
		}
		if !strings.Contains(status, words) {
			t.Errorf("%q is missing in the status line:\n%s", words, status)
		}
	}
	if strings.Contains(output+status, secret) {
		t.Errorf("a secret is shown:\n%s\n%s", output, status)
	}
}

// TestEveryCommandRefusesBadInput holds the commands to one loader of the
// configuration, and to one answer about files: a command that waits for a right
// waits for ever.
func TestEveryCommandRefusesBadInput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		input    badInput
		commands []string
	}{
		"an exposed password": {exposedSecrets["everybody may read a password"], []string{
			"run", "validate", "validate --offline", "doctor", "migrate up", "migrate status", "status", "healthcheck",
			"poll orders --once --dry-run", "events tail", "observers list", "observers backfill orders",
		}},
		"a closed state folder": {badPlaces["the state folder is closed"], []string{"migrate up", "validate", "status"}},
		"a closed certificate": {badInput{
			database: `{url: "postgres://observerd@127.0.0.1:1/observerd?sslmode=verify-full&sslrootcert={folder}/secret"}`,
			closed:   map[string]os.FileMode{"secret": 0}, code: exitDenied, says: []string{"{folder}/secret: permission denied"},
		}, []string{"validate"}},
		// The database worked until then: SQLite says no more than that it cannot open it.
		"a file system that has become read-only": {badInput{
			database: inOpen, mount: "mode=0777", mounted: "./observerd migrate up && mount -o remount,bind,ro open",
			code: exitDenied, says: []string{" is on a file system that is read-only; mount it writable"},
		}, []string{"doctor --watch 0", "status", "migrate status"}},
	} {
		for _, command := range c.commands {
			t.Run(name+"/"+command, func(t *testing.T) {
				t.Parallel()
				f := c.input.folder(t, false)
				code, output := f.run(t, strings.Fields(command)...)
				if code != c.input.code {
					t.Errorf("exit code %d, want %d", code, c.input.code)
				}
				if words := f.fill(c.input.says[0]); !strings.Contains(output, words) || strings.Contains(output, secret) {
					t.Errorf("want %q and no secret:\n%s", words, output)
				}
			})
		}
	}
}

// TestFullDiskAtStart has no space at all for the database: that is waited for,
// and no right that is missing.
func TestFullDiskAtStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	f := badInput{database: inOpen, mount: "size=4k,mode=0777"}.folder(t, false)
	cmd := f.command(ctx, t, "run")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	lines := bufio.NewReader(stderr)
	for !strings.Contains(said.String(), "Waiting for the coordination database") {
		line, err := lines.ReadString('\n')
		said.WriteString(line)
		if err != nil {
			t.Fatalf("it did not wait: %v\n%s", err, said.String())
		}
	}
	if !strings.Contains(said.String(), "full") {
		t.Errorf("it does not say that the disk is full:\n%s", said.String())
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_, _ = said.ReadFrom(lines)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, said.String())
	}
}

// nobody is a user without rights.
const nobody = 65534

// badFolder is where a program runs that cannot go well.
type badFolder struct {
	input  badInput
	path   string
	root   bool
	fill   func(string) string
	notify *net.UnixConn
}

// folder makes the folder. It is not in t.TempDir, whose parents are closed to
// other users.
func (b badInput) folder(t *testing.T, root bool) badFolder {
	t.Helper()
	path, err := os.MkdirTemp("", "observerd-bad-")
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(os.Chmod(filepath.Join(path, "closed"), 0o700), os.RemoveAll(path))) })
	f := badFolder{input: b, path: path, root: root}
	f.fill = strings.NewReplacer("{folder}", path, "{taken}", taken(t), "{low}", low(t, b)).Replace
	must(t, os.Chmod(path, 0o755))
	for _, name := range []string{"open", "closed"} {
		must(t, os.Mkdir(f.name(name), 0o755))
	}
	must(t, os.Symlink("nowhere", f.name("link")))
	for name, text := range map[string]string{
		"plain": "", "config.yaml": f.fill(b.yaml()), "secret": "postgres://app:" + secret + "@127.0.0.1:1/observerd?sslmode=disable",
	} {
		must(t, os.WriteFile(f.name(name), []byte(text), 0o600))
	}
	must(t, os.Chmod(f.name("config.yaml"), 0o644))
	f.notify, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: f.name("notify"), Net: "unixgram"})
	must(t, err)
	t.Cleanup(func() { must(t, f.notify.Close()) })
	must(t, os.Chmod(f.name("notify"), 0o666))
	if os.Geteuid() == 0 && !root {
		for _, name := range []string{"open", "closed", "plain", "secret", "config.yaml"} {
			must(t, os.Chown(f.name(name), nobody, nobody))
		}
	}
	for name, mode := range b.closed {
		must(t, os.Chmod(f.name(name), mode))
	}
	return f
}

func (f badFolder) name(name string) string { return filepath.Join(f.path, name) }

func (b badInput) yaml() string {
	return fmt.Sprintf(`database: %s
http: %s
sources: {shop: {url: %q}}
observers: [{id: orders, type: order, source: shop, table: orders, key: id, timestamp: at}]
sinks: [%s]
`, b.database, cmp.Or(b.http, `{listen: ""}`), cmp.Or(b.source, "sqlite:shop.db"), cmp.Or(b.sink, "{id: screen, type: stdout}"))
}

// taken returns an address on which the test listens.
func taken(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { must(t, listener.Close()) })
	return listener.Addr().String()
}

// low returns the highest port that needs a right.
func low(t *testing.T, b badInput) string {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
	must(t, err)
	first, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must(t, err)
	if first < 2 && strings.Contains(b.http, "{low}") {
		servertest.Lacking(t, "every user of this host may listen on every port: net.ipv4.ip_unprivileged_port_start is %d", first)
	}
	return strconv.Itoa(first - 1)
}

// command is this binary as observerd in the folder.
func (f badFolder) command(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	// A path that needs no right to walk to the binary.
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = append([]string{"observerd"}, args...)
	if f.input.mount != "" {
		cmd = f.mounted(ctx, t, args...)
	}
	cmd.Dir = f.path
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0", "GOCOVERDIR=" + os.Getenv("GOCOVERDIR"), "NOTIFY_SOCKET=" + f.name("notify")}
	for _, variable := range f.input.environ {
		cmd.Env = append(cmd.Env, f.fill(variable))
	}
	cmd.SysProcAttr = f.user()
	return cmd
}

func (f badFolder) user() *syscall.SysProcAttr {
	if os.Geteuid() != 0 || f.root {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

// mounted runs the command where a file system of its own is in the place of
// the folder open. Any user may make one that nobody else sees, where the
// kernel allows namespaces for users.
func (f badFolder) mounted(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	namespace := []string{"--mount", "--map-root-user"}
	try := exec.CommandContext(ctx, "unshare", append(namespace, "true")...)
	try.SysProcAttr = f.user()
	if output, err := try.CombinedOutput(); err != nil {
		servertest.Lacking(t, "this user may not mount anything here: %v: %s", err, output)
	}
	// The name decides what the binary is; the shell inherits it opened.
	binary, err := os.Open("/proc/self/exe")
	must(t, err)
	t.Cleanup(func() { must(t, binary.Close()) })
	if err := os.Symlink("/proc/self/fd/3", f.name("observerd")); !errors.Is(err, os.ErrExist) {
		must(t, err)
	}
	script := `mount -t tmpfs -o "$0" none open && ` + cmp.Or(f.input.mounted, "true") + ` && exec ./observerd "$@"`
	cmd := exec.CommandContext(ctx, "unshare", append(append(namespace, "sh", "-c", script, f.input.mount), args...)...)
	cmd.ExtraFiles = []*os.File{binary}
	return cmd
}

// run runs the program to its end.
func (f badFolder) run(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := f.command(ctx, t, args...)
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), both.String()
}

// status returns the last status line that the service manager was told.
func (f badFolder) status(t *testing.T) string {
	t.Helper()
	must(t, f.notify.SetReadDeadline(time.Now().Add(30*time.Second)))
	message := make([]byte, 64<<10)
	for {
		n, err := f.notify.Read(message)
		if err != nil {
			t.Fatalf("no status line of the end: %v", err)
		}
		for line := range strings.Lines(string(message[:n])) {
			if strings.HasPrefix(line, "STATUS=Ended") {
				return strings.TrimSpace(line)
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
