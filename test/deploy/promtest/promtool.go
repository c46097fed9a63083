package promtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/observerd/observerd/test/kit/servertest"
)

// ErrNoPrograms means that this machine has no programs of Prometheus.
var ErrNoPrograms = errors.New("no programs of Prometheus (prometheus, promtool) found")

// folders are where packages put the programs, beside those of PATH.
var folders = []string{"/usr/bin", "/usr/local/bin", "/opt/prometheus", "/opt/homebrew/bin"}

// Promtool returns the path of promtool, which tests rules. It installs
// Prometheus first where there is none.
func Promtool(ctx context.Context) (string, error) { return program(ctx, "promtool") }

// Prometheus returns the path of the server, which is not running. It installs
// it first where there is none.
func Prometheus(ctx context.Context) (string, error) { return program(ctx, "prometheus") }

// program looks into the folder that PROMTEST_BINDIR names, and into no other
// when it is set.
func program(ctx context.Context, name string) (string, error) {
	dir := os.Getenv("PROMTEST_BINDIR")
	if dir == "" {
		found, err := product().Programs(ctx)
		if err != nil {
			return "", err
		}
		dir = found
	}
	path, err := exec.LookPath(filepath.Join(dir, name))
	if err != nil {
		return "", fmt.Errorf("%w in PROMTEST_BINDIR: %w", ErrNoPrograms, err)
	}
	return path, nil
}

// product is one package for both programs. Debian's would start the server, but
// for what [servertest.Product] sets.
func product() servertest.Product {
	return servertest.Product{
		Name: "Prometheus",
		Packages: map[string]string{
			"apt-get": "prometheus",
			"dnf":     "golang-github-prometheus",
			"apk":     "prometheus",
			"pacman":  "prometheus",
			"brew":    "prometheus",
		},
		Find:    func(context.Context) (string, error) { return locate() },
		Missing: ErrNoPrograms,
		Instead: "put prometheus and promtool into PATH, or set PROMTEST_BINDIR to their folder",
	}
}

// locate returns the first folder that has both programs.
func locate() (string, error) {
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), folders...) {
		if executable(dir, "promtool") && executable(dir, "prometheus") {
			return dir, nil
		}
	}
	return "", ErrNoPrograms
}

func executable(dir, name string) bool {
	_, err := exec.LookPath(filepath.Join(dir, name))
	return err == nil
}
