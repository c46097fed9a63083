package servertest

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Account is whom a server runs as. Database servers refuse to run as root, or
// should not, so root hands them to somebody who may do less; everybody else
// keeps them. The zero value is the user of the tests.
type Account struct {
	// Credential is nil when the server runs as the user of the tests.
	Credential *syscall.Credential
}

// accountOf returns whom root runs the product as: the first of these users
// that exists.
func accountOf(product string, users ...string) (Account, error) {
	if os.Geteuid() != 0 {
		return Account{}, nil
	}
	for _, name := range users {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(found.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(found.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return Account{}, fmt.Errorf("read the ids of user %s: %w", name, err)
		}
		return Account{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
	}
	return Account{}, fmt.Errorf("root may not run %s, and there is no user %s to run it as", product, strings.Join(users, " or "))
}

// Attributes of a child process: whom it runs as, and the signal for [DieWithParent].
// A process group of its own keeps Ctrl-C, which ends the tests, from reaching the
// server first.
func (a Account) Attributes(onDeath syscall.Signal) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Credential: a.Credential, Setpgid: true}
	DieWithParent(attributes, onDeath)
	return attributes
}

// Own gives path to the account.
func (a Account) Own(path string) error {
	if a.Credential == nil {
		return nil
	}
	return os.Chown(path, int(a.Credential.Uid), int(a.Credential.Gid))
}

// reaches reports whether the account may walk down to dir.
func (a Account) reaches(dir string) bool {
	if a.Credential == nil {
		return true
	}
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}
