package cluster_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// nobody is a user without rights.
const nobody = 65534

// TestUserWithoutRights runs a node as nobody. The folder is not in t.TempDir,
// whose parents are closed to other users.
func TestUserWithoutRights(t *testing.T) {
	t.Parallel()
	source := openPostgres(t)
	for name, mode := range map[string]os.FileMode{"writable": 0o777, "unwritable": 0o555} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, err := os.MkdirTemp("", "observerd-nobody-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(folder) })
			t.Cleanup(func() { _ = os.Chmod(folder, 0o700) })
			h := hostIn(folder, remember(t, "sqlite:"+filepath.Join(folder, "observerd.db")), source.url)
			d := filepath.Join(folder, "a")
			must(t, h.config("a", settings{}).Write(d))
			if err := os.Chmod(folder, mode); err != nil {
				t.Fatal(err)
			}
			var attributes syscall.SysProcAttr
			if os.Geteuid() == 0 {
				attributes.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
				must(t, os.Chown(filepath.Join(d, "config.yaml"), nobody, nobody))
			}
			node := run(t, "a", d, attributes, "run")
			if mode == 0o777 {
				node.ready(t)
				checkHistory(t, h.memory, h.sink(), source.rows(t))
				return
			}
			if code := node.ends(t, patience); code != 77 {
				t.Errorf("exit code %d, want 77:\n%s", code, node.Log)
			}
			if node.Log.Count("cannot be written by this user") == 0 {
				t.Errorf("the log does not say why:\n%s", node.Log)
			}
		})
	}
}
