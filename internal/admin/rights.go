package admin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/config/fileowner"
	"github.com/observerd/observerd/internal/wiring"
)

// CheckRights checks that this user may write where the configuration says:
// the SQLite file of the coordination database, with its log and the signs of
// life beside it, the files of sinks, and the folder of the Unix socket. It
// writes nothing itself. A daemon would wait for such a file for ever, as it
// does for a database that is down; a right does not come back by itself. A disk
// that is full or gone is no missing right: it is waited for.
func CheckRights(cfg *config.Config) error {
	errs := []error{mayWriteDatabase(cfg)}
	for i, s := range cfg.Sinks {
		for key, path := range s.Written() {
			key = fmt.Sprintf("sinks[%d].%s (sink %s)", i, key, s.ID)
			errs = append(errs, mayWrite(key, path))
			if m, ok := s.Settings.(interface{ Missing() error }); ok && m.Missing() != nil && errs[len(errs)-1] == nil {
				errs = append(errs, place(key, "%w", m.Missing()))
			}
		}
	}
	if socket := cfg.HTTP.Socket; socket != "" {
		errs = append(errs, mayMakeIn("http.socket", filepath.Dir(socket)))
	}
	return errors.Join(errs...)
}

// mayWriteDatabase is mayWrite of the coordination database; nil where that is no file.
func mayWriteDatabase(cfg *config.Config) error {
	if cfg.Database.URL.Dialect() != config.SQLite {
		return nil
	}
	return mayWrite("database.url", cfg.Database.URL.Path())
}

// mayWrite checks that the file can be written, and other files made beside
// it: SQLite keeps its log there, and a sink its repaired file. It opens nothing:
// closing a descriptor of an SQLite file would drop the locks that this
// process holds on it.
func mayWrite(key, path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return place(key, "%s is a folder; use the name of a file in it", path)
	case err == nil:
		if err := checkWritable(path, false); err != nil {
			return refusedPath(key, path, err)
		}
	}
	return mayMakeIn(key, filepath.Dir(path))
}

// mayMakeIn checks that files can be made in the folder. A missing folder is made when
// it is needed, with its parents.
func mayMakeIn(key, folder string) error {
	for beyond := false; ; folder = filepath.Dir(folder) {
		info, err := os.Stat(folder)
		switch {
		case err == nil && !info.IsDir():
			return place(key, "%s is a file, so that no file can be below it; use another place, or move it away", folder)
		case err == nil && beyond: // This user may not enter it.
			return refusedPath(key, folder, fs.ErrPermission)
		case err == nil:
			if err := checkWritable(folder, true); err != nil {
				return refusedPath(key, folder, err)
			}
			return nil
		case errors.Is(err, fs.ErrNotExist) && isLink(folder):
			return place(key, "%s is a link to a place that does not exist; make that, or correct the link", folder)
		case errors.Is(err, fs.ErrPermission):
			beyond = true
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			return nil // No question of rights: the part that opens it says why, and waits.
		}
		if folder == filepath.Dir(folder) {
			return nil
		}
	}
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// place is the error of a place that no right makes usable: the configuration has to
// name another.
func place(key, format string, args ...any) error {
	return wiring.Mistake(fmt.Errorf(key+": "+format, args...))
}

// refusedPath is the error of a path that this user may not write, with its remedy.
func refusedPath(key, path string, err error) error {
	if full, err := filepath.Abs(path); err == nil { // A reader of the log does not know in which folder the daemon runs.
		path = full
	}
	if errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%s: %s is on a file system that is read-only; mount it writable, or use another place "+
			"(under systemd, StateDirectory= and ReadWritePaths= make one): %w", key, path, err)
	}
	owner := fileowner.OfPath(path)
	if owner != "" {
		owner = " (" + owner + ")"
	}
	return fmt.Errorf("%s: %s cannot be written by %s%s; change owner or mode with chown or chmod, run this as its owner, "+
		"or write another place (under systemd, StateDirectory= makes one): %w", key, path, fileowner.Me(), owner, err)
}

// checkWritable asks the kernel whether this user may write a file, or make files in
// a folder. Only a refusal is an error: a disk that is full or gone is waited
// for elsewhere.
func checkWritable(path string, folder bool) error {
	mode := uint32(unix.W_OK)
	if folder {
		mode |= unix.X_OK
	}
	err := unix.Access(path, mode)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return err
	}
	return nil
}
