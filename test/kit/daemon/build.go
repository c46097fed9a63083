package daemon

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
)

// program is what [Build] compiles.
const program = "github.com/observerd/observerd/cmd/observerd"

// BuildOptions say how the program is compiled.
type BuildOptions struct {
	// Package is the command that is built; empty means the program.
	Package string
	// Out is the file of the binary; required.
	Out string
	// Tags are build tags, separated by commas; empty for none.
	Tags string
	// Overlay is a file as `go build -overlay` reads it; empty for none.
	Overlay string
	// Version is what the binary says of itself; empty leaves it to Go.
	Version string
	// Folder is one inside of the module; empty means the working directory.
	Folder string
}

// Build compiles the program. It needs the go command and the module's source.
func Build(ctx context.Context, o BuildOptions) error {
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
	if o.Package == "" {
		o.Package = program
	}
	cmd := exec.CommandContext(ctx, "go", append(args, o.Package)...)
	cmd.Dir = o.Folder
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", path.Base(o.Package), err, output)
	}
	return nil
}
