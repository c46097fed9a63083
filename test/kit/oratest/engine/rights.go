package engine

import (
	"maps"
	"slices"
	"strings"
)

// user is a user or a role.
type user struct {
	password string
	locked   bool
	role     bool
	// all says that the user owns the database: everything is allowed.
	all     bool
	system  map[string]bool // system privileges and roles
	objects map[objectName]map[string]bool
}

func newUser(password string) *user {
	return &user{password: password, system: map[string]bool{}, objects: map[objectName]map[string]bool{}}
}

// Login says how a user may log on: the password, and the number of the refusal
// that a logon with it gets, 0 for none (28000 for a locked account, 1045 where
// CREATE SESSION is missing). ok is false for a user that does not exist. The
// name is in any case.
func (e *Engine) Login(name string) (password string, refusal int, ok bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	u := e.users[name]
	if u == nil {
		name = strings.ToUpper(name)
		u = e.users[name]
	}
	switch {
	case u == nil || u.role:
		return "", 0, false
	case u.locked:
		return u.password, 28000, true
	case !e.has(name, "CREATE SESSION"):
		return u.password, 1045, true
	}
	return u.password, 0, true
}

// SetPassword changes the password of a user, the owner among them.
func (e *Engine) SetPassword(name, password string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if u := e.users[name]; u != nil {
		u.password = password
	}
}

// grantees are the names whose rights a user has: its own, PUBLIC, its roles.
// The caller holds mu.
func (e *Engine) grantees(name string) []string {
	all := []string{name}
	for i := 0; i < len(all); i++ {
		if u := e.users[all[i]]; u != nil {
			for granted := range u.system {
				if r := e.users[granted]; r != nil && r.role && !slices.Contains(all, granted) {
					all = append(all, granted)
				}
			}
		}
	}
	return append(all, "PUBLIC")
}

// has says whether a user has a system privilege or a role. The caller holds
// mu.
func (e *Engine) has(name, privilege string) bool {
	for _, g := range e.grantees(name) {
		if u := e.users[g]; u != nil && (u.all || u.system[privilege]) {
			return true
		}
	}
	return false
}

// hasOn says whether a user has one of the privileges on an object. The caller
// holds mu.
func (e *Engine) hasOn(name string, o *object, privileges ...string) bool {
	if o.owner == name || o.virtual != nil && o.virtual.public {
		return true
	}
	for _, g := range e.grantees(name) {
		u := e.users[g]
		if u == nil {
			continue
		}
		if u.all {
			return true
		}
		for _, p := range privileges {
			if u.objects[o.objectName][p] {
				return true
			}
		}
	}
	return false
}

// mayRead says whether a user may select from an object: 942 hides the others,
// unless the user has another privilege on it.
func (e *Engine) mayRead(_ *session, name string, o *object) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.hasOn(name, o, "SELECT", "READ") {
		return nil
	}
	if o.owner == "SYS" {
		if e.has(name, "SELECT_CATALOG_ROLE") || e.has(name, "SELECT ANY DICTIONARY") {
			return nil
		}
	} else if e.has(name, "SELECT ANY TABLE") || e.has(name, "READ ANY TABLE") {
		return nil
	}
	if e.hasOn(name, o, "INSERT", "UPDATE", "DELETE") {
		return refuse(1031)
	}
	return refuse(942)
}

// mayChange is mayRead for INSERT, UPDATE and DELETE: 1031 where the object can
// be seen.
func (e *Engine) mayChange(name string, o *object, privilege string) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	switch {
	case e.hasOn(name, o, privilege) || e.has(name, privilege+" ANY TABLE"):
		return nil
	case e.hasOn(name, o, "SELECT", "READ", "INSERT", "UPDATE", "DELETE"):
		return refuse(1031)
	}
	return refuse(942)
}

// resolve finds what a name means to a user: something of the schema, or a
// public synonym.
func (e *Engine) resolve(s *session, name, schema, object string) (*object, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if schema == "" {
		schema = name
		if name == s.user {
			schema = s.schema
		}
		if e.objects[objectName{schema, object}] == nil {
			schema = "PUBLIC"
		}
	}
	o := e.objects[objectName{schema, object}]
	for range 8 {
		if o == nil || o.synonym == nil {
			break
		}
		o = e.objects[*o.synonym]
	}
	if o == nil {
		return nil, refuse(942)
	}
	return o, nil
}

// privilegesOf are the system privileges of a user, in order. The caller holds
// mu.
func (e *Engine) privilegesOf(name string, roles bool) []string {
	all := map[string]bool{}
	for _, g := range e.grantees(name) {
		if u := e.users[g]; u != nil {
			for p := range u.system {
				if (e.users[p] != nil && e.users[p].role) == roles {
					all[p] = true
				}
			}
			if u.all && !roles {
				for _, p := range []string{"CREATE SESSION", "CREATE TABLE", "CREATE VIEW", "CREATE USER", "GRANT ANY PRIVILEGE", "SELECT ANY DICTIONARY"} {
					all[p] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}
