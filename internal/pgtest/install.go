package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// installTimeout bounds a package manager that downloads from a slow mirror.
const installTimeout = 10 * time.Minute

// manager is a package manager and the commands that make it install the
// server without asking anything.
type manager struct {
	name     string
	commands [][]string
}

func managers() []manager {
	return []manager{
		{"apt-get", [][]string{
			{"apt-get", "update"},
			{"apt-get", "install", "-y", "--no-install-recommends", "postgresql"},
		}},
		{"dnf", [][]string{{"dnf", "install", "-y", "postgresql-server"}}},
		{"yum", [][]string{{"yum", "install", "-y", "postgresql-server"}}},
		{"apk", [][]string{{"apk", "add", "--no-cache", "postgresql"}}},
		{"zypper", [][]string{{"zypper", "--non-interactive", "install", "postgresql-server"}}},
		{"pacman", [][]string{{"pacman", "-Sy", "--noconfirm", "postgresql"}}},
		{"brew", [][]string{{"brew", "install", "postgresql@17"}}},
	}
}

// binaries returns the folder of the server programs, and installs them first
// where there are none.
func binaries(ctx context.Context) (string, error) {
	where := systemLocator()
	dir, err := where.find(ctx)
	if err == nil || where.bindir != "" {
		return dir, err
	}
	if err := installOnce(ctx, where); err != nil {
		return "", err
	}
	return where.find(ctx)
}

// installOnce installs under a lock: `go test` starts the binaries of several
// packages at once, and package managers refuse to run twice.
func installOnce(ctx context.Context, where locator) error {
	lock, err := lockFile(ctx, filepath.Join(os.TempDir(), "observerd-pgtest-install.lock"))
	if err != nil {
		return fmt.Errorf("wait for another installation: %w", err)
	}
	defer lock.Close()
	if _, err := where.find(ctx); err == nil {
		return nil
	}
	return install(ctx)
}

func install(ctx context.Context) error {
	for _, m := range managers() {
		if _, err := exec.LookPath(m.name); err != nil {
			continue
		}
		prefix, err := privileges(ctx, m.name)
		if err != nil {
			return fmt.Errorf("%w: run `%s` as root, or set PGTEST_BINDIR to the folder of initdb, or PGTEST_URL to a cluster: %w",
				errNoBinaries, lastCommand(m), err)
		}
		return m.run(ctx, prefix)
	}
	return fmt.Errorf("%w and no package manager known here: install the PostgreSQL server (version 15 or newer)"+
		" and put its initdb into PATH, or set PGTEST_BINDIR or PGTEST_URL", errNoBinaries)
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

func (m manager) run(ctx context.Context, prefix []string) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	for _, command := range m.commands {
		// sudo clears the environment, so env sets it on the far side. RUNLEVEL=1
		// keeps Debian from starting a server of its own that nobody asked for.
		words := append(append([]string{}, prefix...), "env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		words = append(words, command...)
		out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("install the PostgreSQL server with %v: %w\n%s", command, err, out)
		}
	}
	return nil
}

func lastCommand(m manager) string {
	text := ""
	for _, word := range m.commands[len(m.commands)-1] {
		text += " " + word
	}
	return text[1:]
}
