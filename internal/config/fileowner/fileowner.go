// Package fileowner names, for messages about missing rights, the user of this
// process and the owner of a file. It only words what the system knows; nothing
// is decided by it.
package fileowner

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
)

// Me is the user of this process: "this user (observerd, uid 997)". A user
// without a name, as in many containers, is "this user (uid 65532)", and a
// system without numbers for users gives "this user".
func Me() string {
	uid := os.Geteuid()
	if uid < 0 {
		return "this user"
	}
	number := strconv.Itoa(uid)
	if u, err := user.LookupId(number); err == nil {
		return fmt.Sprintf("this user (%s, uid %s)", u.Username, number)
	}
	return fmt.Sprintf("this user (uid %s)", number)
}

// Of says whose a file is and what its mode allows: "it belongs to
// root:observerd and has mode 0640". It is empty where that is not known.
func Of(info fs.FileInfo) string {
	uid, gid, ok := numbers(info)
	if !ok {
		return ""
	}
	return fmt.Sprintf("it belongs to %s:%s and has mode %04o", userName(uid), groupName(gid), info.Mode().Perm())
}

// OfPath is [Of] the file with that name; a symbolic link is followed.
func OfPath(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return Of(info)
}

func userName(uid string) string {
	if u, err := user.LookupId(uid); err == nil {
		return u.Username
	}
	return uid
}

func groupName(gid string) string {
	if g, err := user.LookupGroupId(gid); err == nil {
		return g.Name
	}
	return gid
}
