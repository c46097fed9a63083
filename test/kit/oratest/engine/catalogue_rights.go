package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// definePrivileges makes the views that say who may do what.
func (e *Engine) definePrivileges() {
	of := func(roles bool) func(*run) [][]value {
		return func(r *run) [][]value {
			e.mu.RLock()
			defer e.mu.RUnlock()
			var all [][]value
			for _, p := range e.privilegesOf(r.session.user, roles) {
				all = append(all, row(p))
			}
			return all
		}
	}
	e.public("SESSION_PRIVS", "PRIVILEGE", of(false))
	e.public("SESSION_ROLES", "ROLE", of(true))
	direct := func(roles bool) func(*run) [][]value {
		return func(r *run) [][]value {
			e.mu.RLock()
			defer e.mu.RUnlock()
			var all [][]value
			for _, p := range slices.Sorted(maps.Keys(e.users[r.session.user].system)) {
				if (e.users[p] != nil && e.users[p].role) == roles {
					all = append(all, row(r.session.user, p, "NO", "NO"))
				}
			}
			return all
		}
	}
	e.public("USER_SYS_PRIVS", "USERNAME PRIVILEGE ADMIN_OPTION COMMON", direct(false))
	e.public("USER_ROLE_PRIVS", "USERNAME GRANTED_ROLE ADMIN_OPTION COMMON", direct(true))
	e.defineObjectPrivileges()
	e.defineNLS()
}

// defineObjectPrivileges makes the views of what was granted on objects.
func (e *Engine) defineObjectPrivileges() {
	onObjects := func(names func(*run) []string) func(*run) [][]value {
		return func(r *run) [][]value {
			e.mu.RLock()
			defer e.mu.RUnlock()
			var all [][]value
			for _, name := range names(r) {
				all = append(all, e.objectPrivileges(name)...)
			}
			return all
		}
	}
	e.public("USER_TAB_PRIVS", "GRANTEE OWNER TABLE_NAME GRANTOR PRIVILEGE GRANTABLE", onObjects(func(r *run) []string {
		return []string{r.session.user}
	}))
	e.public("ALL_TAB_PRIVS", "GRANTEE TABLE_SCHEMA TABLE_NAME GRANTOR PRIVILEGE GRANTABLE", onObjects(func(r *run) []string {
		return e.grantees(r.session.user)
	}))
	e.public("ROLE_TAB_PRIVS", "ROLE OWNER TABLE_NAME GRANTOR PRIVILEGE GRANTABLE", onObjects(func(r *run) []string {
		return slices.DeleteFunc(e.grantees(r.session.user), func(n string) bool {
			return n == "PUBLIC" || e.users[n] == nil || !e.users[n].role
		})
	}))
}

func (e *Engine) objectPrivileges(name string) [][]value {
	u := e.users[name]
	if u == nil {
		return nil
	}
	objects := slices.SortedFunc(maps.Keys(u.objects), func(a, b objectName) int {
		return cmp.Or(strings.Compare(a.owner, b.owner), strings.Compare(a.name, b.name))
	})
	var all [][]value
	for _, o := range objects {
		for _, p := range slices.Sorted(maps.Keys(u.objects[o])) {
			all = append(all, row(name, o.owner, o.name, o.owner, p, "NO"))
		}
	}
	return all
}

// defineNLS makes the views of settings and versions.
func (e *Engine) defineNLS() {
	e.public("NLS_SESSION_PARAMETERS", "PARAMETER VALUE", func(r *run) [][]value {
		var all [][]value
		for _, name := range slices.Sorted(maps.Keys(r.session.nls)) {
			all = append(all, row(name, r.session.nls[name]))
		}
		return all
	})
	e.public("NLS_DATABASE_PARAMETERS", "PARAMETER VALUE", func(*run) [][]value {
		return [][]value{
			row("NLS_CHARACTERSET", cmp.Or(e.options.Charset, "AL32UTF8")), row("NLS_NCHAR_CHARACTERSET", "AL16UTF16"),
			row("NLS_LANGUAGE", "AMERICAN"), row("NLS_TERRITORY", "AMERICA"), row("NLS_LENGTH_SEMANTICS", "BYTE"),
		}
	})
	e.public("GLOBAL_NAME", "GLOBAL_NAME", func(*run) [][]value { return [][]value{row(e.Database().Name)} })
	product := fmt.Sprintf("Oracle Database %d Enterprise Edition", e.options.Version)
	e.public("PRODUCT_COMPONENT_VERSION", "PRODUCT VERSION VERSION_FULL STATUS", func(*run) [][]value {
		full := e.Database().FullVersion
		return [][]value{row(product, full, full, "Production")}
	})
	e.system("V_$VERSION", "V$VERSION", "BANNER BANNER_FULL CON_ID:n", true, func(*run) [][]value {
		full := e.Database().FullVersion
		return [][]value{row(product+" Release "+full+" - Production", product+" Release "+full+" - Production", 0)}
	})
}
