package page_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/observerd/observerd/test/kit/servertest"
)

// axe is the release of axe-core, which judges how well everybody can use a page, and the
// SHA-256 of its package.
const axe, axeSum = "axe-core-4.14.1.tgz", "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745"

var axeOnce struct {
	sync.Mutex
	script string
}

// axeScript returns the script of axe-core, which npm fetches once.
func axeScript(t *testing.T) string {
	t.Helper()
	axeOnce.Lock()
	defer axeOnce.Unlock()
	if axeOnce.script != "" {
		return axeOnce.script
	}
	folder := filepath.Join(cache(t), "npm")
	file := filepath.Join(folder, axe)
	if _, err := os.Stat(file); err != nil {
		ctx, cancel := context.WithTimeout(t.Context(), 2*servertest.InstallTimeout)
		defer cancel()
		must(t, fetch(ctx, folder))
	}
	packed, err := os.ReadFile(file)
	must(t, err)
	if sum := sha256.Sum256(packed); hex.EncodeToString(sum[:]) != axeSum {
		t.Fatalf("%s is not what npm had: remove it", file)
	}
	axeOnce.script, err = unpack(packed, "package/axe.min.js")
	must(t, err)
	return axeOnce.script
}

// fetch has npm, which is installed where it is missing, put the package into the folder.
func fetch(ctx context.Context, folder string) error {
	packages := make(map[string]string)
	for _, manager := range []string{"apt-get", "dnf", "yum", "apk", "zypper", "pacman"} {
		packages[manager] = "npm"
	}
	npm, err := servertest.Product{
		Name: "npm", Packages: packages, Missing: errors.New("no npm found, which fetches axe-core"),
		Commands: []string{"npm"}, Instead: "put npm into PATH",
	}.Programs(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	part, err := os.MkdirTemp(folder, "part-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(part)
	version := strings.TrimSuffix(strings.TrimPrefix(axe, "axe-core-"), ".tgz")
	cmd := exec.CommandContext(ctx, filepath.Join(npm, "npm"), "pack", "axe-core@"+version, "--silent", "--ignore-scripts", "--pack-destination", part, "--cache", filepath.Join(part, "cache"))
	cmd.Dir = part
	cmd.SysProcAttr = servertest.Account{}.Attributes(syscall.SIGKILL)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fetch axe-core with npm: %w\n%s", err, output)
	}
	return os.Rename(filepath.Join(part, axe), filepath.Join(folder, axe))
}

// unpack returns a file of an archive.
func unpack(packed []byte, name string) (string, error) {
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", err
	}
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		if err != nil {
			return "", fmt.Errorf("look for %s: %w", name, err)
		}
		if header.Name == name {
			text, err := io.ReadAll(archive)
			return string(text), err
		}
	}
}

// violation is a rule that the page breaks.
type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// accessible wants that axe finds nothing, by any of its rules, and that it has looked.
func (b *tab) accessible(state string) {
	b.t.Helper()
	found := answer[struct {
		Passes     int
		Violations []violation
	}](b, `(() => {`+axeScript(b.t)+`})() ?? axe.run(document, {resultTypes: ['violations']}).then(r => ({Passes: r.passes.length, Violations: r.violations}))`)
	for _, v := range found.Violations {
		b.t.Errorf("%s: axe finds %s: %s", state, v.ID, v.Help)
		for _, node := range v.Nodes[:min(3, len(v.Nodes))] {
			b.t.Logf("%s\n%s", node.HTML, node.Summary)
		}
	}
	if found.Passes < 10 {
		b.t.Errorf("%s: axe has tested %d rules, so nothing is proved", state, found.Passes)
	}
}
