package engine

import "slices"

// defineRights runs CREATE USER, GRANT and REVOKE.
func (e *Engine) defineRights(s *session, st statement) error {
	if g, ok := st.(grantStatement); ok && g.object != "" {
		return e.grantObject(s, g)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if u := e.users[s.user]; u == nil || !u.all {
		return refuse(1031)
	}
	switch st := st.(type) {
	case createUser:
		if e.users[st.name] != nil {
			return refuse(1920, st.name)
		}
		e.users[st.name] = newUser()
	case grantStatement:
		return e.grantSystem(st)
	}
	return nil
}

// grantSystem grants and revokes system privileges. The caller holds mu.
func (e *Engine) grantSystem(st grantStatement) error {
	for _, name := range st.grantees {
		u := e.users[name]
		if u == nil {
			return refuse(1917, name)
		}
		for _, p := range st.privileges {
			if st.revoke {
				if !u.system[p] {
					return refuse(1927)
				}
				delete(u.system, p)
			} else {
				u.system[p] = true
			}
		}
	}
	return nil
}

// objectPrivilegesKnown are what GRANT … ON takes.
var objectPrivilegesKnown = []string{"SELECT", "READ", "INSERT", "UPDATE", "DELETE", "EXECUTE", "ALTER", "REFERENCES", "INDEX", "FLASHBACK", "DEBUG"}

func (e *Engine) grantObject(s *session, st grantStatement) error {
	o, err := e.resolve(s, s.user, st.schema, st.object)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if u := e.users[s.user]; o.owner != s.user && (u == nil || !u.all) {
		return refuse(1031)
	}
	// A grant goes to a view of the system, never to its public synonym.
	if st.schema == "" && o.virtual != nil && o.name != st.object {
		return refuse(2030)
	}
	for _, p := range st.privileges {
		if !slices.Contains(objectPrivilegesKnown, p) || p == "READ" && e.options.Version < 12 {
			return refuse(990)
		}
	}
	for _, name := range st.grantees {
		u := e.users[name]
		if u == nil {
			return refuse(1917, name)
		}
		for _, p := range st.privileges {
			if st.revoke {
				delete(u.objects[o.objectName], p)
				continue
			}
			if u.objects[o.objectName] == nil {
				u.objects[o.objectName] = map[string]bool{}
			}
			u.objects[o.objectName][p] = true
		}
	}
	return nil
}
