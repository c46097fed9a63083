package config

import (
	"os"
	"path/filepath"
)

// networks and doubtful are the kinds of file systems, by their magic numbers, on which
// SQLite is at risk; those of the latter may be local.
var (
	networks = map[uint32]string{
		0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "SMB", 0xfe534d42: "SMB", 0x5346414f: "AFS", 0x6b414653: "AFS",
		0x73757245: "Coda", 0x00c36400: "Ceph", 0x01161970: "GFS2", 0x7461636f: "OCFS2", 0x0bd00bd0: "Lustre", 0x47504653: "GPFS",
	}
	doubtful = map[uint32]string{0x65735546: "FUSE", 0x01021997: "9p"}
)

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
	switch network, kind := networks[magic], doubtful[magic]; {
	case network != "":
		r.Reject(key, "the file would be on a network file system ("+network+
			"), where SQLite loses data; use a path on a local disk, or use PostgreSQL")
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
