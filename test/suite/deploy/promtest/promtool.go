package promtest

import (
	"context"
	"errors"

	"github.com/observerd/observerd/test/kit/servertest"
)

// ErrNoPrograms means that this machine has no programs of Prometheus.
var ErrNoPrograms = errors.New("no programs of Prometheus (prometheus, promtool) found")

// folders are where packages put the programs, beside those of PATH.
var folders = []string{"/usr/bin", "/usr/local/bin", "/opt/prometheus", "/opt/homebrew/bin"}

// Promtool returns the path of promtool, which tests rules. It installs
// Prometheus first where there is none.
func Promtool(ctx context.Context) (string, error) {
	return product().Program(ctx, variable, "promtool")
}

// Prometheus returns the path of the server, which is not running. It installs
// it first where there is none.
func Prometheus(ctx context.Context) (string, error) {
	return product().Program(ctx, variable, "prometheus")
}

// variable names the folder of the programs, and no other is looked into when it is
// set.
const variable = "PROMTEST_BINDIR"

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
	if dir := servertest.FolderWith(folders, "promtool", "prometheus"); dir != "" {
		return dir, nil
	}
	return "", ErrNoPrograms
}
