package servertest

import (
	"os"
	"path/filepath"
	"testing"
)

// A folder that another process is about to remove must not get a file meanwhile.
func TestALookAtAFolderLeavesNothingInIt(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "observerd-exampletest-1")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if (Kind{Name: "Example", Pid: "server.pid"}).leftover(dir) {
		t.Error("a folder that is as new counts as left over")
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("the look has left %v, %v", files, err)
	}
}
