package servertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// unpack downloads Debian packages and unpacks them into the product's folder.
func (p Product) unpack(ctx context.Context, packages []string) (err error) {
	parent := filepath.Dir(p.Unpack)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(parent, "unpack-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := p.download(ctx, work, packages); err != nil {
		return fmt.Errorf("%w\n%s", err, p.Instead)
	}
	found, err := filepath.Glob(filepath.Join(work, "*.deb"))
	if err != nil {
		return err
	}
	root := filepath.Join(work, "root")
	for _, path := range found {
		if err := p.run(ctx, nil, []string{"dpkg-deb", "--extract", path, root}); err != nil {
			return err
		}
	}
	// Whole or not at all: what Find does not find there is of no use.
	return errors.Join(os.RemoveAll(p.Unpack), os.Rename(root, p.Unpack))
}

// download leaves the packages in dir. Images of containers have no lists of apt,
// and only root may fetch them for the system: there they are fetched into dir.
func (p Product) download(ctx context.Context, dir string, packages []string) error {
	there := []string{"env", "--chdir=" + dir}
	words := append([]string{"apt-get", "download"}, packages...)
	if p.run(ctx, there, words) == nil {
		return nil
	}
	own := []string{"-o", "Dir::State=" + filepath.Join(dir, "state"), "-o", "Dir::Cache=" + filepath.Join(dir, "cache")}
	for _, sub := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	return p.run(ctx, there, slices.Insert([]string{"apt-get", "update"}, 1, own...), slices.Insert(words, 1, own...))
}
