package config

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/observerd/observerd/internal/config/yamlfile"
)

// The mode that container engines give to secrets is not worth a warning: it
// cannot be changed, and in the container are no other users.
func TestSecretsOfContainerEngines(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		path string
		mode fs.FileMode
		want int
	}{
		"by the engine":    {"/run/secrets/database-url", 0o444, 0},
		"by its user":      {"/run/secrets/database-url", 0o644, 1},
		"in another place": {"/etc/observerd/database-url", 0o444, 1},
	} {
		info, err := fs.Stat(fstest.MapFS{"file": {Mode: test.mode}}, "file")
		if err != nil {
			t.Fatal(err)
		}
		l := yamlfile.NewReport("config.yaml")
		o := Options{OthersMayRead: func(fs.FileInfo) bool { return true }}
		o.warnOfReaders(l, "database.url-file", test.path, info)
		if len(l.Warnings) != test.want {
			t.Errorf("%s: %v", name, l.Warnings)
		}
	}
}
