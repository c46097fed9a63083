package liveness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// filePresence shows a process by a lock on a file of its own beside the
// database. The kernel gives the lock back when the process dies; unlike a
// process id, it means the same in all containers that share the folder.
type filePresence struct {
	db       *sqldb.DB
	sql      *sqldb.Statements[presenceSQL]
	bootID   string
	prefix   string // of the files' paths; the boot id follows
	own      *flock.Flock
	searched time.Time
}

// staleEvery is the time between two searches for files that were left behind.
const staleEvery = time.Minute

// bootIDForm is the form of boot ids that may be part of a file's name.
var bootIDForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,63}$`)

func filePrefix(db *sqldb.DB) string { return db.Path() + "-alive-" }

func (p *filePresence) kind() string { return ByFlock }

// lasts is true: the kernel keeps the lock for as long as the process lives.
func (p *filePresence) lasts() bool { return true }

func (p *filePresence) path(bootID string) string { return p.prefix + bootID }

func (p *filePresence) appear(ctx context.Context) error {
	if !bootIDForm.MatchString(p.bootID) {
		return fmt.Errorf("%w: the boot id cannot name a file", errNoLiveness)
	}
	if p.own != nil {
		if p.shown() {
			return nil
		}
		_ = p.own.Close() // The file was removed: no other node finds it any more.
		p.own = nil
	}
	// Other users' nodes read it too.
	own := flock.New(p.path(p.bootID), flock.SetPermissions(0o644))
	// Another process may be reading the file now.
	if _, err := own.TryLockContext(ctx, time.Millisecond); err != nil {
		return errors.Join(fmt.Errorf("lock the file that shows this node: %w", err), own.Close())
	}
	p.own = own
	return nil
}

func (p *filePresence) look(ctx context.Context, regions []string) (snapshot, error) {
	if !p.shown() {
		return snapshot{}, errors.New("look who is alive: the file that shows this node was removed")
	}
	var s snapshot
	err := p.db.Query(ctx, "look who is alive", p.sql.SQL().Look, func(scan func(...any) error) error {
		return s.add(scan, func(kind, _, _ string) error { return fmt.Errorf("unexpected row %q", kind) })
	}, regionList(p.db, regions))
	if err != nil {
		return snapshot{}, err
	}
	s.alive = func(bootID string) (bool, bool) {
		if bootID == p.bootID {
			return true, true
		}
		return p.alive(bootID)
	}
	p.removeStale(s)
	return s, nil
}

// shown reports whether other nodes still find our file.
func (p *filePresence) shown() bool {
	held, err := p.own.Stat()
	if err != nil {
		return false
	}
	found, err := os.Stat(p.own.Path())
	return err == nil && os.SameFile(held, found)
}

// alive tries the lock of another process briefly. A shared lock does not disturb
// other nodes that look. A file that is missing or cannot be opened
// says nothing.
func (p *filePresence) alive(bootID string) (alive, known bool) {
	if !bootIDForm.MatchString(bootID) {
		return false, false
	}
	other := flock.New(p.path(bootID), flock.SetFlag(os.O_RDONLY))
	locked, err := other.TryRLock()
	if err != nil {
		_ = other.Close()
		return false, false
	}
	if locked {
		// Before the file is closed: a child that is being started may have it
		// open too.
		_ = other.Unlock()
		return false, true
	}
	_ = other.Close()
	return true, true
}

func (p *filePresence) free(ctx context.Context, l lease) (freed bool, err error) {
	tx, err := p.db.Lease.BeginTx(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("free lock %s of a dead node: %w", l.Key, err)
	}
	defer func() { err = sqldb.EndTx(tx, err); freed = freed && err == nil }()
	if alive, known := p.alive(l.boot); alive || !known {
		return false, nil
	}
	n, err := sqldb.Affected(tx.ExecContext(ctx, p.sql.SQL().Free, l.Key, l.Region, l.term, l.touched, l.boot))
	if err != nil {
		return false, fmt.Errorf("free lock %s of a dead node: %w", l.Key, err)
	}
	if n == 0 {
		return false, nil
	}
	_, err = tx.ExecContext(ctx, p.sql.SQL().NoteDead, l.Key, l.Region, l.term)
	return err == nil, err
}

// removeStale removes files of the dead that nothing in the database names any more,
// now and then.
func (p *filePresence) removeStale(s snapshot) {
	if time.Since(p.searched) < staleEvery {
		return
	}
	p.searched = time.Now()
	named := map[string]bool{p.bootID: true}
	for _, of := range s.signs {
		named[of.boot] = true
	}
	entries, err := os.ReadDir(filepath.Dir(p.prefix))
	if err != nil {
		return
	}
	for _, entry := range entries {
		bootID, ours := strings.CutPrefix(entry.Name(), filepath.Base(p.prefix))
		if ours && !named[bootID] && old(entry) {
			p.remove(bootID)
		}
	}
}

// old leaves a node that is just starting the time to take its lock.
func old(entry fs.DirEntry) bool {
	info, err := entry.Info()
	return err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > staleEvery
}

// remove removes the file of a dead process.
func (p *filePresence) remove(bootID string) {
	if alive, known := p.alive(bootID); known && !alive {
		_ = os.Remove(p.path(bootID))
	}
}

// vanish removes the file while it is locked, so that no node finds it unlocked.
func (p *filePresence) vanish(context.Context) error {
	if p.own == nil {
		return nil
	}
	own := p.own
	p.own = nil
	err := os.Remove(own.Path())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err := errors.Join(err, own.Close()); err != nil {
		return fmt.Errorf("remove the file that shows this node: %w", err)
	}
	return nil
}
