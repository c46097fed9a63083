package sqlite

import (
	"os"
	"syscall"
	"testing"
)

// mounted is a file on a device.
type mounted struct {
	os.FileInfo
	stat syscall.Stat_t
}

func (m mounted) Sys() any { return &m.stat }

func TestFileOnAnotherNodeIsTheSame(t *testing.T) {
	t.Parallel()
	here, there := mounted{stat: syscall.Stat_t{Ino: 12}}, mounted{stat: syscall.Stat_t{Ino: 12}}
	here.stat.Dev, there.stat.Dev = 1792, 1793
	if a, b := fileIdentity(here), fileIdentity(there); a != b || a == "" {
		t.Errorf("identities = %q and %q of one file", a, b)
	}
}
