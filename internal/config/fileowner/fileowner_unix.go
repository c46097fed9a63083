//go:build unix

package fileowner

import (
	"io/fs"
	"strconv"
	"syscall"
)

// numbers are the user and the group that a file belongs to.
func numbers(info fs.FileInfo) (uid, gid string, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", "", false
	}
	return strconv.FormatUint(uint64(stat.Uid), 10), strconv.FormatUint(uint64(stat.Gid), 10), true
}

// OthersMayRead reports whether every user of the host may read a file, as far as
// its mode says. Pipes and devices have a mode that says nothing of who reads
// what goes through them.
func OthersMayRead(info fs.FileInfo) bool {
	const others fs.FileMode = 0o004
	return info.Mode().IsRegular() && info.Mode()&others != 0
}
