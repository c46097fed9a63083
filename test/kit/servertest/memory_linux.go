package servertest

import "syscall"

// shm is where Linux keeps files in memory, and room is what the servers of a
// whole test run may fill of it.
const (
	shm         = "/dev/shm"
	tmpfsMagic  = 0x01021994 // statfs(2)
	room        = 4 << 30    // bytes
	stickyWrite = 0o1003     // every user may make files, and remove only its own
)

// Memory returns a folder whose files stay in memory, or "" where there is none
// with enough room. What a server syncs there costs nothing, and is lost with the
// machine's power, which no test takes away.
func Memory() string {
	var stat syscall.Stat_t
	var fs syscall.Statfs_t
	if syscall.Stat(shm, &stat) != nil || stat.Mode&stickyWrite != stickyWrite || syscall.Statfs(shm, &fs) != nil ||
		fs.Type != tmpfsMagic || fs.Bavail*uint64(fs.Bsize) < room { //nolint:gosec // The size of a block is positive.
		return ""
	}
	return shm
}

// sweepMemory is [Kind.sweep] also for runs that keep their files on the disk: what
// a killed run has left in memory takes it away from everybody.
func (k Kind) sweepMemory() { k.sweep(shm) }
