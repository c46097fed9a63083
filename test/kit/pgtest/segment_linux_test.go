package pgtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Ids of shared memory are given out again after the machine was started anew,
// while a folder from before may still be there.
func TestForeignSegmentIsKept(t *testing.T) {
	t.Parallel()
	key := 1 + rand.IntN(math.MaxInt32-1) // Nobody else's, by all odds, nor that of a run that was killed.
	id, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	for _, test := range []struct {
		key  int
		kept bool
	}{{key + 1, true}, {key, false}} {
		data := t.TempDir()
		text := strings.Repeat("\n", 6) + fmt.Sprintf("%d %d\n", test.key, id)
		if err := os.WriteFile(filepath.Join(data, "postmaster.pid"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := removeSegment(data); err != nil {
			t.Fatal(err)
		}
		var segment unix.SysvShmDesc
		if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &segment); (err == nil) != test.kept {
			t.Errorf("the segment of key %d, freed by key %d: %v", key, test.key, err)
		}
	}
}
