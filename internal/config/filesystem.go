package config

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
