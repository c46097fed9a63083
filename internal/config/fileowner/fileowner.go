// Package fileowner says who may read a file: its owner and mode, and the user of this
// process. Its texts are for messages about missing rights.
package fileowner

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
	"syscall"
)

// Me is the user of this process: "this user (observerd, uid 997)". A user
// without a name, as in many containers, is "this user (uid 65532)".
func Me() string {
	uid := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(uid); err == nil {
		return fmt.Sprintf("this user (%s, uid %s)", u.Username, uid)
	}
	return fmt.Sprintf("this user (uid %s)", uid)
}

// OfPath says whose a file is and what its mode allows: "it belongs to
// root:observerd and has mode 0640". A symbolic link is followed. The text is empty
// where that cannot be read.
func OfPath(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	owner, group := strconv.FormatUint(uint64(stat.Uid), 10), strconv.FormatUint(uint64(stat.Gid), 10)
	if u, err := user.LookupId(owner); err == nil {
		owner = u.Username
	}
	if g, err := user.LookupGroupId(group); err == nil {
		group = g.Name
	}
	return fmt.Sprintf("it belongs to %s:%s and has mode %04o", owner, group, info.Mode().Perm())
}

// Close says how to keep other users from reading a file that this process still has to
// read: "run chmod 640 config.yaml".
func Close(path string, info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && !mine(stat) {
		return fmt.Sprintf("run chown %d %s and chmod 400 %[2]s, as %s reads it as one of the others", os.Geteuid(), path, Me())
	}
	return "run chmod 640 " + path
}

// mine reports whether this process reads a file as more than one of all users.
func mine(stat *syscall.Stat_t) bool {
	groups, _ := os.Getgroups() // That it has none is the worst that is assumed.
	uid := os.Geteuid()
	return uid == 0 || uid == int(stat.Uid) || slices.Contains(append(groups, os.Getegid()), int(stat.Gid))
}

// OthersMayRead reports whether every user of the host may read a file, as far as
// its mode says. It reports false for pipes and devices, whose mode does not say who
// reads what passes through them.
func OthersMayRead(info fs.FileInfo) bool {
	const others fs.FileMode = 0o004
	return info.Mode().IsRegular() && info.Mode()&others != 0
}
