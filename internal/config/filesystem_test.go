package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

func TestNetworkFileSystems(t *testing.T) {
	t.Parallel()
	const fuse, plan9 = 0x65735546, 0x01021997
	for magic, kind := range map[uint32]string{
		0x6969: "NFS", 0xff534d42: "SMB", 0xfe534d42: "SMB", 0x517b: "SMB", 0x5346414f: "AFS", 0x00c36400: "Ceph",
		0x01161970: "GFS2", 0x7461636f: "OCFS2", 0x73757245: "Coda", fuse: "", plan9: "", 0xef53: "",
	} {
		text := "database: {url: \"sqlite:/data/deep/observerd.db\"}\n" + minimal
		o := config.Options{Kinds: wiring.Kinds(), Paths: []string{write(t, text)}, StatFS: func(path string) (uint32, error) {
			if path == "/" { // The nearest directory that exists.
				return magic, nil
			}
			return 0, nil
		}}
		_, warnings, err := config.Load(o)
		switch {
		case kind != "" && (err == nil || !strings.Contains(err.Error(), ":1:17: the file would be on a network file system ("+kind+")")):
			t.Errorf("%#x: %v", magic, err)
		case kind == "" && err != nil:
			t.Errorf("%#x: %v", magic, err)
		case (magic == fuse || magic == plan9) != (len(warnings) == 1):
			t.Errorf("%#x: warnings %v", magic, warnings)
		}
	}
}

func TestLocalFileSystemIsAccepted(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "made", "later", "observerd.db")
	_, _, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{write(t, "database: {url: \"sqlite:"+db+"\"}\n"+minimal)}})
	if err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(db)); err == nil {
		t.Error("looking at the file system made a directory")
	}
}
