package compose_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/observerd/observerd/internal/admin/sample"
	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/servertest"
)

// nobody is the user of the image.
const nobody = 65532

// rootfs is a file system with what the Dockerfile puts into the image.
type rootfs struct {
	folder  string
	workdir string
	// owned are the folders of the image's user, by their paths inside.
	owned []string
}

// newRootfs does what the COPY instructions of the image do. Their sources are
// those of the stage that builds, which are known here.
func newRootfs(t *testing.T) rootfs {
	t.Helper()
	r := rootfs{folder: filepath.Join(t.TempDir(), "rootfs"), workdir: one(t, "WORKDIR").rest}
	must(t, os.Mkdir(r.folder, 0o755)) //nolint:gosec // Another user enters it.
	for _, i := range image(t) {
		if i.name != "COPY" {
			continue
		}
		flags, rest := i.flags()
		from, to, _ := strings.Cut(rest, " ")
		switch from {
		case "/src/bin/observerd":
			program, err := os.ReadFile(binary(t))
			must(t, err)
			r.write(t, to, string(program), 0o755)
		case "/etc/ssl/certs/ca-certificates.crt":
			r.write(t, to, "", 0o644)
		case "/rootfs/":
			r.mkdir(t, "/var/lib", 0o755)
		case "/state":
			r.mkdir(t, to, 0o700)
			if flags["chown"] == fmt.Sprintf("%d:%d", nobody, nobody) {
				r.own(t, to)
			}
		default:
			t.Fatalf("the image takes %s from the build; this test does not know what that is", from)
		}
	}
	return r
}

func (r *rootfs) mkdir(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	path = filepath.Join(r.folder, path)
	must(t, os.MkdirAll(filepath.Dir(path), 0o755)) //nolint:gosec // Another user enters it.
	must(t, os.Mkdir(path, mode))
}

func (r *rootfs) write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	path = filepath.Join(r.folder, path)
	must(t, os.MkdirAll(filepath.Dir(path), 0o755)) //nolint:gosec // Another user enters it.
	must(t, os.WriteFile(path, []byte(text), mode))
	must(t, os.Chmod(path, mode)) // Whatever the mask of the tests.
}

// own gives a path to the user of the image. Without root it is the user of the
// tests who plays that one.
func (r *rootfs) own(t *testing.T, path string) {
	t.Helper()
	if os.Geteuid() == 0 {
		must(t, os.Chown(filepath.Join(r.folder, path), nobody, nobody))
	}
	r.owned = append(r.owned, path)
}

// attributes put a process into the file system as the user of the image: by root
// itself, or in a user namespace, where everything belongs to that user and is
// kept from changes by its modes alone.
func (r *rootfs) attributes() syscall.SysProcAttr {
	if os.Geteuid() == 0 {
		return syscall.SysProcAttr{Chroot: r.folder, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return syscall.SysProcAttr{
		Chroot: r.folder, Cloneflags: syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: nobody, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: nobody, HostID: os.Getgid(), Size: 1}},
	}
}

// start runs a program of the image, with nothing in its environment.
func (r *rootfs) start(t *testing.T, name string, words ...string) (*daemon.Process, error) {
	t.Helper()
	return launch(t, daemon.Options{
		Binary: words[0], Args: words[1:], Name: name, Folder: r.workdir, LogFile: filepath.Join(t.TempDir(), name+".log"),
		Attributes: r.attributes(),
	})
}

// outside lists what is in the file system but not in the folders of the user.
func (r *rootfs) outside(t *testing.T) (all []string) {
	t.Helper()
	must(t, filepath.WalkDir(r.folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, r.folder)
		info, err := entry.Info()
		all = append(all, fmt.Sprintf("%s %s", info.Mode(), name))
		if err == nil && slices.Contains(r.owned, name) {
			return fs.SkipDir
		}
		return err
	}))
	return all
}

// protect takes the right to write from folders and files that are not the
// user's. Root's are protected as they are.
func (r *rootfs) protect(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	var paths []string
	must(t, filepath.WalkDir(r.folder, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && slices.Contains(r.owned, strings.TrimPrefix(path, r.folder)) {
			return fs.SkipDir
		}
		paths = append(paths, path)
		return err
	}))
	for _, path := range paths {
		info, err := os.Stat(path)
		must(t, err)
		must(t, os.Chmod(path, info.Mode().Perm()&^0o222))
		t.Cleanup(func() { _ = os.Chmod(path, info.Mode().Perm()) })
	}
}

// stock puts a small warehouse into the folder of the state.
func (r *rootfs) stock(t *testing.T) {
	t.Helper()
	path := filepath.Join(r.folder, r.workdir, "warehouse.db")
	warehouse, err := sample.Open(t.Context(), path, 0)
	must(t, err)
	must(t, warehouse.Close())
	files, err := filepath.Glob(path + "*")
	must(t, err)
	for _, file := range files {
		if os.Geteuid() == 0 {
			must(t, os.Chown(file, nobody, nobody))
		}
	}
}

const sqliteNode = `
node: {name: alone}
database: {url: "sqlite:observerd.db"}
sources: {warehouse: {url: "sqlite:warehouse.db", timezone: Europe/Berlin}}
observers:
  - {id: orders, type: order, source: warehouse, table: orders, key: order_id, timestamp: updated_at}
sinks: [{id: file, type: file, path: events.jsonl}]
http: {listen: "127.0.0.1:%d"}
log: {format: json}
`

// TestTheImageIsEnough runs the program in a file system that has what the image
// has: no shell, no libraries, no zones, no users, no /proc and no /tmp. Nothing
// but the folder of the state may be written, and nothing else changes.
func TestTheImageIsEnough(t *testing.T) {
	t.Parallel()
	r := newRootfs(t)
	r.stock(t)
	if len(r.owned) != 1 || r.owned[0] != r.workdir {
		t.Fatalf("the user owns %q, and works in %s", r.owned, r.workdir)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r.write(t, configPath, "", 0o644)
	r.protect(t)
	var node *daemon.Process
	must(t, servertest.StartOnFreePort(ctx, func(port int) (err error) {
		must(t, os.Chmod(filepath.Join(r.folder, configPath), 0o600))
		must(t, os.WriteFile(filepath.Join(r.folder, configPath), fmt.Appendf(nil, sqliteNode, port), 0o600))
		must(t, os.Chmod(filepath.Join(r.folder, configPath), 0o444)) //nolint:gosec // There is no secret in it.
		node, err = r.start(t, "node", append(one(t, "ENTRYPOINT").words(t), one(t, "CMD").words(t)...)...)
		if os.Geteuid() != 0 && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC)) {
			servertest.Lacking(t, "neither root nor allowed to make a user namespace: the program has not run in the image's file system")
		}
		if err != nil {
			return err
		}
		return node.Ready(ctx)
	}))
	before := r.outside(t)
	eventually(t, func() error {
		text, err := os.ReadFile(filepath.Join(r.folder, r.workdir, "events.jsonl"))
		return failedIf(err != nil || len(text) == 0, "no event: %v", err)
	})
	check, err := r.start(t, "healthcheck", one(t, "HEALTHCHECK").words(t)...)
	must(t, err)
	if code := check.ExitCode(); code != 0 {
		t.Errorf("the health check of a node at work ends with %d:\n%s", code, check.Log)
	}
	if code, err := node.Stop(ctx); err != nil || code != 0 {
		t.Errorf("SIGTERM ends the node with %d: %v", code, err)
	}
	check, err = r.start(t, "healthcheck-after", one(t, "HEALTHCHECK").words(t)...)
	must(t, err)
	if code := check.ExitCode(); code != 1 {
		t.Errorf("the health check of a node that has ended ends with %d, want 1:\n%s", code, check.Log)
	}
	if after := r.outside(t); !slices.Equal(before, after) {
		t.Errorf("the file system was\n%q\nand is\n%q", before, after)
	}
}
