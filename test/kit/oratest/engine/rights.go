package engine

// user is somebody who has rights.
type user struct {
	// all says that the user owns the database: everything is allowed.
	all     bool
	system  map[string]bool // system privileges
	objects map[objectName]map[string]bool
}

func newUser() *user {
	return &user{system: map[string]bool{}, objects: map[objectName]map[string]bool{}}
}

// has says whether a user has a system privilege. The caller holds mu.
func (e *Engine) has(name, privilege string) bool {
	for _, g := range []string{name, "PUBLIC"} {
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
	for _, g := range []string{name, "PUBLIC"} {
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
func (e *Engine) mayRead(name string, o *object) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.hasOn(name, o, "SELECT", "READ") {
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
