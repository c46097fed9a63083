package web

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSocketIsNeverOpenToOthers looks at the mode that the socket is made with,
// under an umask that takes nothing away. It does not run beside other tests:
// the umask is that of the process.
func TestSocketIsNeverOpenToOthers(t *testing.T) {
	before := unix.Umask(0)
	defer unix.Umask(before)
	path := filepath.Join(t.TempDir(), "s")
	config := net.ListenConfig{Control: closeToOthers}
	listener, err := config.Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm() != ownerOnly {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestFolderWithoutRights is done as a user who may not write the folder.
func TestFolderWithoutRights(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o500); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		const root, nobody = 0, 65534
		runtime.LockOSThread()
		if err := syscall.Setfsuid(nobody); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := syscall.Setfsuid(root); err == nil {
				runtime.UnlockOSThread() // Else the thread ends with the test.
			}
		}()
	}
	_, _, err := listenSocket(t.Context(), filepath.Join(folder, "s"))
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
}
