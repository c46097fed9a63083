package engine

import "slices"

// user is somebody who has rights.
type user struct {
	// all says that the user owns the database: everything is allowed.
	all     bool
	objects map[objectName]map[string]bool
}

func newUser() *user { return &user{objects: map[objectName]map[string]bool{}} }

// owns says that a user owns the database.
func (e *Engine) owns(name string) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	u := e.users[name]
	return u != nil && u.all
}

// hasOn says whether a user has one of the privileges on an object. The caller
// holds mu.
func (e *Engine) hasOn(name string, o *object, privileges ...string) bool {
	if o.owner == name || o.virtual != nil && o.virtual.public {
		return true
	}
	u := e.users[name]
	return u != nil && (u.all || slices.ContainsFunc(privileges, func(p string) bool { return u.objects[o.objectName][p] }))
}

// may refuses a user who has none of the privileges on an object: 942 hides those on which
// the user has no other privilege.
func (e *Engine) may(name string, o *object, privileges ...string) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	switch {
	case e.hasOn(name, o, privileges...):
	case e.hasOn(name, o, "SELECT", "READ", "INSERT", "UPDATE", "DELETE"):
		panic(refuse(1031))
	default:
		panic(refuse(942))
	}
}

// find returns what a name means to a user, something of the schema or a public
// synonym, or nil.
func (e *Engine) find(user, schema, name string) *object {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if schema == "" {
		schema = user
		if e.objects[objectName{schema, name}] == nil {
			schema = "PUBLIC"
		}
	}
	o := e.objects[objectName{schema, name}]
	for range 8 {
		if o == nil || o.synonym == nil {
			break
		}
		o = e.objects[*o.synonym]
	}
	return o
}

// resolve is find where the name has to mean something.
func (e *Engine) resolve(user, schema, name string) *object {
	o := e.find(user, schema, name)
	if o == nil {
		panic(refuse(942))
	}
	return o
}
