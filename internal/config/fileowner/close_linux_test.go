package fileowner_test

import (
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/observerd/observerd/internal/config/fileowner"
)

// TestCloseKeepsAFileReadable asks as the owner of a file, and as a user of a container
// who reads a mounted file as everybody may.
func TestCloseKeepsAFileReadable(t *testing.T) {
	t.Parallel()
	path := file(t, 0o644)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fileowner.Close(path, info), "run chmod 640 "+path; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if os.Geteuid() != 0 {
		return // Only root becomes another user.
	}
	if err := os.Chown(path, 1000, 1000); err != nil {
		t.Fatal(err)
	}
	if info, err = os.Stat(path); err != nil {
		t.Fatal(err)
	}
	said := make(chan string)
	go func() {
		runtime.LockOSThread() // It ends with this goroutine, and is the only one of that user.
		const same, nobody = ^uintptr(0), 65532
		if _, _, err := syscall.RawSyscall(syscall.SYS_SETRESUID, same, nobody, same); err != 0 {
			said <- err.Error()
			return
		}
		said <- fileowner.Close(path, info)
	}()
	if got, want := <-said, "run chown 65532 "+path+" and chmod 400 "+path+", as this user (uid 65532) reads it as one of the others"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
