// Package maventest lets Maven build what tests and measurements run in Java.
package maventest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/servertest"
)

// building lets one Maven at a time write into its repository.
var building sync.Mutex

// Build returns the folder of the jars of a project, which is a folder of the repository: its
// pom.xml puts them into ${output} in the phase package. They are built and fetched once for each
// state of the project's files, into the .cache of the repository. maven is the program.
func Build(ctx context.Context, maven, project string, files ...string) (string, error) {
	building.Lock()
	defer building.Unlock()
	root, err := daemon.Root(ctx)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(root, project, name))
		if err != nil {
			return "", err
		}
		sum.Write(text)
	}
	cache := filepath.Join(root, ".cache", filepath.Base(project))
	jars := filepath.Join(cache, hex.EncodeToString(sum.Sum(nil)[:8]))
	if _, err := os.Stat(jars); err == nil {
		return jars, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	part, err := os.MkdirTemp(cache, "part-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	ctx, cancel := context.WithTimeout(ctx, servertest.InstallTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, maven, "--batch-mode", "--quiet", "-f", filepath.Join(root, project), "-Dmaven.repo.local="+filepath.Join(root, ".cache", "maven"), "-Doutput="+part, "package")
	cmd.SysProcAttr = servertest.Account{}.Attributes(syscall.SIGKILL)
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s with Maven: %w\n%s", project, err, output)
	}
	if err := os.Rename(part, jars); err != nil && !errors.Is(err, os.ErrExist) { // Another process has built it, too.
		return "", err
	}
	return jars, nil
}
