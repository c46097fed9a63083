package yamlfile

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPipes reads a pipe that nobody writes, which is an empty file, and one as
// a shell makes it of --config <(program).
func TestPipes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, _, why := Read(path); why != nil || len(text) > 0 {
		t.Errorf("without a writer: %q, %v", text, why)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	read := make(chan string, 1)
	go func() {
		text, _, why := Read(fmt.Sprintf("/proc/self/fd/%d", r.Fd()))
		read <- fmt.Sprint(string(text), why == nil)
	}()
	if _, err := w.WriteString("log: {}\n"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != "log: {}\ntrue" {
		t.Errorf("read %q", got)
	}
}
