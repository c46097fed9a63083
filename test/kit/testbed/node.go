package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/waittest"
)

// patience bounds what has no figure of its own: the start of a node, its end,
// the news of it at the others.
const patience = 2 * time.Minute

// starts tells the logs of several starts of one node apart.
var starts atomic.Int64

// Launch starts a node in a folder of its own under that of the cluster. The process is
// killed when ctx ends. Variables have the form OBSERVERD_…=….
func (b *Testbed) Launch(ctx context.Context, cluster string, c daemon.Config, variables ...string) (*daemon.Process, error) {
	folder, err := filepath.Abs(filepath.Join(b.Folder, cluster, c.Node))
	if err != nil {
		return nil, err
	}
	if err := c.Write(folder); err != nil {
		return nil, err
	}
	binary, err := filepath.Abs(b.Binary)
	if err != nil {
		return nil, err
	}
	return daemon.Start(ctx, daemon.Options{
		Binary: binary, Name: c.Node, Folder: folder, Env: variables,
		LogFile: filepath.Join(folder, fmt.Sprintf("%s-%d.log", c.Node, starts.Add(1))),
	})
}

// Start launches a node and waits until it is ready.
func (b *Testbed) Start(ctx context.Context, cluster string, c daemon.Config, variables ...string) (*daemon.Process, error) {
	p, err := b.Launch(ctx, cluster, c, variables...)
	if err != nil {
		return nil, err
	}
	ready, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := p.Ready(ready); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// Sees waits until each of these nodes knows of all of them and of no other.
func Sees(ctx context.Context, nodes []*daemon.Process) error {
	for _, node := range nodes {
		err := Until(ctx, patience, func() error {
			m, err := node.Metrics(ctx)
			if err != nil {
				return err
			}
			if live := int(m.Sum("observerd_live_nodes")); live != len(nodes) {
				return fmt.Errorf("%s knows of %d nodes, not of %d", node.Name(), live, len(nodes))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Stop ends nodes as a service manager does.
func Stop(ctx context.Context, nodes ...*daemon.Process) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	var errs []error
	for _, node := range nodes {
		code, err := node.Stop(ctx)
		if err == nil && code != 0 {
			err = fmt.Errorf("%s has ended with %d; its log ends with:\n%s", node.Name(), code, node.Log.Tail(2000))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Until is [waittest.Within], with an error that says how long that was.
func Until(ctx context.Context, limit time.Duration, complaint func() error) error {
	if err := waittest.Within(ctx, limit, complaint); err != nil {
		return errors.Join(context.Cause(ctx), fmt.Errorf("within %s: %w", limit, err))
	}
	return nil
}

// Final is [waittest.Final].
func Final(err error) error { return waittest.Final(err) }

// Wait lets time pass.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Binary compiles the program into the folder unless a binary is named.
func Binary(ctx context.Context, named, folder string) (string, error) {
	if named != "" {
		return named, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // As the folder of the testbed.
		return "", fmt.Errorf("make the folder for the binary: %w", err)
	}
	out, err := filepath.Abs(filepath.Join(folder, "observerd"))
	if err != nil {
		return "", err
	}
	return out, daemon.Build(ctx, daemon.BuildOptions{Out: out})
}
