package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/observerd/observerd/internal/config"
)

// CheckRights tells whether this user may write where the configuration says:
// the SQLite file of the coordination database and the files of sinks. It
// writes nothing itself. A daemon would wait for such a file for ever, as it
// does for a database that is down; a right does not come back by itself.
func CheckRights(cfg *config.Config) error {
	var errs []error
	if cfg.Database.URL.Dialect() == config.SQLite {
		errs = append(errs, mayWrite("database.url", cfg.Database.URL.Path()))
	}
	for _, s := range cfg.Sinks {
		if s.Type == config.SinkFile {
			errs = append(errs, mayWrite("sink "+s.ID, s.Path))
		}
	}
	return errors.Join(errs...)
}

// mayWrite tells whether the file can be written, and other files made beside
// it: SQLite keeps its log there, and a sink what it repairs. It opens nothing:
// closing a descriptor of an SQLite file would drop the locks that this
// process holds on it.
func mayWrite(what, path string) error {
	if _, err := os.Stat(path); err == nil {
		if err := access(path, false); err != nil {
			return refusedPath(what, path, err)
		}
	}
	folder := filepath.Dir(path)
	for {
		_, err := os.Stat(folder)
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		folder = filepath.Dir(folder) // It is made when it is needed.
	}
	if err := access(folder, true); err != nil {
		return refusedPath(what, folder, err)
	}
	return nil
}

func refusedPath(what, path string, err error) error {
	return fmt.Errorf("%s: %s cannot be written by this user; change its owner or mode, or name another place: %w", what, path, err)
}
