package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/web"
	"github.com/observerd/observerd/internal/wiring"
)

// What a user without rights is told stands in cmd/observerd/badinput_*_test.go.

func TestFaultOfTheSystem(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want wiring.Fault
	}{
		"a right":                    {refusedPath("sinks[0].path", "/x", syscall.EACCES), wiring.Denied},
		"a file system for reading":  {refusedPath("database.url", "/x", syscall.EROFS), wiring.Denied},
		"a wrong place":              {place("database.url", "%s is a file", "/x"), wiring.Misconfigured},
		"a right and a wrong place":  {errors.Join(place("database.url", "%s is a file", "/x"), refusedPath("http.socket", "/y", syscall.EACCES)), wiring.Denied},
		"a full disk":                {fmt.Errorf("make its folder: %w", &fs.PathError{Op: "mkdir", Path: "/x", Err: syscall.ENOSPC}), wiring.Failure},
		"a full quota":               {fmt.Errorf("write: %w", syscall.EDQUOT), wiring.Failure},
		"an address of ours":         {fmt.Errorf("start: %w", web.ErrSetting), wiring.Misconfigured},
		"a port that needs a right":  {fmt.Errorf("http.listen: %w", &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", syscall.EACCES)}), wiring.Denied},
		"a file of something else":   {fmt.Errorf("%w: /x", sqldb.ErrNoDatabase), wiring.Misconfigured},
		"a file that was removed":    {fmt.Errorf("%w: /x", sqldb.ErrReplaced), wiring.Misconfigured},
		"no port for a connection":   {&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)}, wiring.Unavailable},
		"a server that is silent":    {fmt.Errorf("find locks: %w", os.ErrDeadlineExceeded), wiring.Unavailable},
		"locks for another account":  {fmt.Errorf("find locks: %w", lock.ErrRefused), wiring.Misconfigured},
		"all ports of a host in use": {&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}, wiring.Unavailable},
	} {
		if got := wiring.FaultOf(test.err); got != test.want {
			t.Errorf("%s: fault %v, want %v: %v", name, got, test.want, test.err)
		}
	}
}

// writes are the settings of a sink that writes to a file.
type writes struct {
	Path string `key:"path" written:"true"`
}

func (*writes) Target() (key, place string)          { return "", "" }
func (*writes) Check(field.Report)                   {}
func (*writes) Probe(context.Context) []kind.Finding { return nil }

// A place that is not there yet is made when it is needed, and not by the look.
func TestRightsForWhatIsNotThereYet(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	below := filepath.Join(folder, "one", "two")
	url, err := wiring.Kinds().Servers.ParseURL("sqlite:" + below + "/a.db")
	if err != nil {
		t.Fatal(err)
	}
	cfg := &config.Config{
		Database: config.Database{URL: url}, HTTP: config.HTTP{Socket: below + "/http.sock"},
		Sinks: []config.Sink{{ID: "lines", Type: "lines", Settings: &writes{Path: below + "/a.jsonl"}}},
	}
	if err := CheckRights(cfg); err != nil {
		t.Errorf("not there yet: %v", err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
		t.Errorf("the look made %v: %v", entries, err)
	}
	if err := os.WriteFile(filepath.Join(folder, "one"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckRights(cfg); !errors.Is(err, wiring.ErrMistake) || wiring.FaultOf(err) != wiring.Misconfigured {
		t.Errorf("a file in the way: %v", err)
	}
}
