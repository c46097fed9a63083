package servertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// InstallTimeout bounds a package manager that downloads from a slow mirror.
const InstallTimeout = 10 * time.Minute

// Product is a server that package managers can install.
type Product struct {
	// Name is for messages, such as "PostgreSQL server".
	Name string
	// Packages are its packages by the command of the package manager.
	Packages map[string]string
	// Unpack is a folder into which those of apt-get, which are separated by
	// spaces, are unpacked; they are not installed. Any user may do that, and
	// it brings no services. Find looks below it. Empty: they are installed.
	Unpack string
	// Commands are what it needs, and Folders where packages put them, beside those of
	// PATH: a daemon is no command for users. They are patterns; of what matches one,
	// the last is looked at first, so that a later version wins.
	Commands, Folders []string
	// Find looks in another way and returns the folder of the programs, or Missing.
	Find func(ctx context.Context) (string, error)
	// Missing is the error of a machine without the programs.
	Missing error
	// Instead says what a person may do who cannot install it: "set
	// PGTEST_BINDIR to …".
	Instead string
}

// manager is a package manager: what it runs first, and what it puts before
// the name of a package.
type manager struct {
	name    string
	refresh []string
	install []string
}

// managers are asked in this order: the first that this machine has decides.
var managers = []manager{
	{"apt-get", []string{"apt-get", "update"}, []string{"apt-get", "install", "-y", "--no-install-recommends"}},
	{"dnf", nil, []string{"dnf", "install", "-y"}},
	{"yum", nil, []string{"yum", "install", "-y"}},
	{"apk", nil, []string{"apk", "add", "--no-cache"}},
	{"zypper", nil, []string{"zypper", "--non-interactive", "install"}},
	{"pacman", nil, []string{"pacman", "-Sy", "--noconfirm"}},
	{"brew", nil, []string{"brew", "install"}},
}

// Programs returns the folder of the server's programs, and installs them
// first where there are none.
func (p Product) Programs(ctx context.Context) (string, error) {
	dir, err := p.find(ctx)
	if err == nil || !errors.Is(err, p.Missing) {
		return dir, err
	}
	if err := p.installOnce(ctx); err != nil {
		return "", err
	}
	return p.find(ctx)
}

func (p Product) find(ctx context.Context) (string, error) {
	if p.Find != nil {
		return p.Find(ctx)
	}
	if dir := FolderWith(p.Folders, p.Commands...); dir != "" {
		return dir, nil
	}
	return "", p.Missing
}

// installOnce installs under a lock that all products share: `go test` starts
// the binaries of several packages at once, and package managers refuse to run
// twice. Each user has one of its own, as nobody may open that of another.
func (p Product) installOnce(ctx context.Context) error {
	lock, err := lockFile(ctx, filepath.Join(os.TempDir(), fmt.Sprintf("observerd-install-%d.lock", os.Geteuid())))
	if err != nil {
		return fmt.Errorf("wait for another installation: %w", err)
	}
	defer lock.Close()
	if _, err := p.find(ctx); err == nil {
		return nil
	}
	return p.install(ctx)
}

func (p Product) install(ctx context.Context) error {
	for _, m := range managers {
		name, known := p.Packages[m.name]
		if _, err := exec.LookPath(m.name); err != nil || !known {
			continue
		}
		if m.name == "apt-get" && p.Unpack != "" {
			return p.unpack(ctx, strings.Fields(name))
		}
		command := append(append([]string{}, m.install...), name)
		prefix, err := privileges(ctx, m.name)
		if err != nil {
			return fmt.Errorf("%w: run `%s` as root, or %s: %w", p.Missing, strings.Join(command, " "), p.Instead, err)
		}
		return p.run(ctx, prefix, m.refresh, command)
	}
	return fmt.Errorf("%w and no package manager known here: install the %s, or %s", p.Missing, p.Name, p.Instead)
}

// privileges returns the words to put before a command that needs root.
func privileges(ctx context.Context, name string) ([]string, error) {
	if os.Geteuid() == 0 || name == "brew" {
		return nil, nil
	}
	if err := exec.CommandContext(ctx, "sudo", "-n", "true").Run(); err != nil {
		return nil, errors.New("neither root nor sudo without a password")
	}
	return []string{"sudo", "-n"}, nil
}

func (p Product) run(ctx context.Context, prefix []string, commands ...[]string) error {
	ctx, cancel := context.WithTimeout(ctx, InstallTimeout)
	defer cancel()
	for _, command := range commands {
		if len(command) == 0 {
			continue
		}
		// sudo clears the environment, so env sets it on the far side. RUNLEVEL=1
		// keeps Debian from starting a server of its own that nobody asked for.
		words := append(append([]string{}, prefix...), "env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		words = append(words, command...)
		out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("install the %s with %v: %w\n%s", p.Name, command, err, out)
		}
	}
	return nil
}

// Program returns the path of one program of the product, which is installed first
// where there is none. A folder that the variable names is not replaced by another. What
// comes with the program lies beside it, and not beside a link to it: those are followed.
func (p Product) Program(ctx context.Context, variable, name string) (string, error) {
	dir := os.Getenv(variable)
	if dir == "" {
		var err error
		if dir, err = p.Programs(ctx); err != nil {
			return "", err
		}
	}
	path, err := exec.LookPath(filepath.Join(dir, name))
	if err != nil {
		return "", fmt.Errorf("%w in %s: %w", p.Missing, variable, err)
	}
	return filepath.EvalSymlinks(path)
}

// FolderWith returns the first folder of PATH, or of those beside it, that has all of
// the programs; empty for none. Those beside it are patterns, as Folders of [Product].
func FolderWith(beside []string, programs ...string) string {
	where := filepath.SplitList(os.Getenv("PATH"))
	for _, pattern := range beside {
		found, _ := filepath.Glob(pattern) // The patterns are well formed.
		slices.Reverse(found)
		where = append(where, found...)
	}
	for _, dir := range where {
		if !slices.ContainsFunc(programs, func(name string) bool {
			_, err := exec.LookPath(filepath.Join(dir, name))
			return err != nil
		}) {
			return dir
		}
	}
	return ""
}
