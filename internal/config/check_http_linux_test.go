package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/webtest"
)

// TestWebConfigThatMayNotBeRead is a missing right, not a mistake.
func TestWebConfigThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"web.yml", "server.key"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Not in t.TempDir, whose parents are closed to other users.
			dir, err := os.MkdirTemp("", "observerd-web-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			webtest.NewAuthority(t).WriteServer(dir, "server")
			file := webtest.WriteConfig(t, dir, webtest.TLS)
			for path, mode := range map[string]os.FileMode{dir: 0o755, file: 0o644, dir + "/server.pem": 0o644, dir + "/server.key": 0o644} {
				if err := os.Chmod(path, mode); err != nil {
					t.Fatal(err)
				}
			}
			denied := filepath.Join(dir, name)
			if err := os.Chmod(denied, 0); err != nil {
				t.Fatal(err)
			}
			asNobody(t)
			_, _, err = config.Load(config.Options{Kinds: wiring.Kinds(), Environ: []string{"OBSERVERD_HTTP_WEB_CONFIG=" + file}})
			if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), denied) {
				t.Errorf("got %v", err)
			}
		})
	}
}
