package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

const (
	module = "github.com/observerd/observerd"
	// program is what [Build] compiles.
	program = module + "/cmd/observerd"
	// suites are the packages of the other module.
	suites = module + "/test/suite/"
)

// BuildOptions say how the program is compiled.
type BuildOptions struct {
	// Package is the command that is built; empty means the program.
	Package string
	// Out is the file of the binary; required.
	Out string
	// Tags are build tags, separated by commas; empty for none.
	Tags string
	// Overlay is a file as `go build -overlay` reads it, by its absolute path; empty for none.
	Overlay string
	// Version is what the binary says of itself; empty leaves it to Go.
	Version string
	// Folder is one inside of the repository; empty means the working directory.
	Folder string
}

// Build compiles the program, in the module that it is of. It needs the go command and
// the source of both modules.
func Build(ctx context.Context, o BuildOptions) error {
	if o.Package == "" {
		o.Package = program
	}
	folder, err := moduleOf(ctx, o.Package, o.Folder)
	if err != nil {
		return err
	}
	if o.Out, err = filepath.Abs(o.Out); err != nil {
		return fmt.Errorf("build %s: %w", path.Base(o.Package), err)
	}
	args := []string{"build", "-trimpath", "-buildvcs=false", "-o", o.Out}
	if o.Tags != "" {
		args = append(args, "-tags", o.Tags)
	}
	if o.Overlay != "" {
		args = append(args, "-overlay", o.Overlay)
	}
	if o.Version != "" {
		args = append(args, "-ldflags", "-X main.version="+o.Version)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, o.Package)...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", path.Base(o.Package), err, output)
	}
	return nil
}

// moduleOf returns the folder of the module that the package is of. The other folder is one
// inside of any of them.
func moduleOf(ctx context.Context, pkg, inside string) (string, error) {
	root, err := rootOf(ctx, inside)
	if err != nil {
		return "", fmt.Errorf("find the module of %s: %w", path.Base(pkg), err)
	}
	if strings.HasPrefix(pkg, suites) {
		return filepath.Join(root, "test", "suite"), nil
	}
	return root, nil
}

// Root returns the folder of the repository that the working directory is in.
func Root(ctx context.Context) (string, error) { return rootOf(ctx, "") }

func rootOf(ctx context.Context, inside string) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Dir = inside
	output, err := list.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return "", fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	return strings.TrimSpace(string(output)), err
}
