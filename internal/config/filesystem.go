package config

import (
	"os"
	"path/filepath"
)

// fileSystem names the kinds of file systems on which SQLite is at risk. network
// is false for those that may be local; every other kind has no name.
func fileSystem(magic uint32) (kind string, network bool) {
	switch magic {
	case 0x6969:
		return "NFS", true
	case 0x517b, 0xff534d42, 0xfe534d42:
		return "SMB", true
	case 0x5346414f, 0x6b414653:
		return "AFS", true
	case 0x73757245:
		return "Coda", true
	case 0x00c36400:
		return "Ceph", true
	case 0x01161970:
		return "GFS2", true
	case 0x7461636f:
		return "OCFS2", true
	case 0x0bd00bd0:
		return "Lustre", true
	case 0x47504653:
		return "GPFS", true
	case 0x65735546:
		return "FUSE", false
	case 0x01021997:
		return "9p", false
	}
	return "", false
}

// checkFileSystem refuses an SQLite file where the locks of one host mean
// nothing to another: two hosts would write it at once and break it.
func (r resolver) checkFileSystem(key string, u URL) {
	if u.Dialect() != SQLite {
		return
	}
	magic, err := r.options.StatFS(nearestExisting(u.Path()))
	if err != nil {
		return // Not for lack of a file system: opening the file says why.
	}
	switch kind, network := fileSystem(magic); {
	case network:
		r.Reject(key, "the file would be on a network file system ("+kind+
			"), where SQLite loses data; write a path on a local disk, or use PostgreSQL")
	case kind != "":
		r.Warn(key, "the file is on "+kind+", which may be a network file system, where SQLite loses data; "+
			"make sure that it is local")
	}
}

// nearestExisting is the path itself, or the deepest directory above it that
// is there already.
func nearestExisting(path string) string {
	for {
		if _, err := os.Stat(path); err == nil {
			return path
		}
		parent := filepath.Dir(path)
		if parent == path {
			return path
		}
		path = parent
	}
}
