package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// searchPath finds schemas in which other roles can create objects that would run with
// the rights of the role.
func searchPath(x *input, f *findings) {
	severity, why := Warning, "Statements of nodes name their schema and heed none of it, but migrations do, and a first one takes a table INT_LOCK that is there for Spring's."
	if x.Server.Pooling.Shared() {
		severity, why = Problem, "Behind this pooler sessions keep the search_path of the role: an operator or function whose types fit better than those of PostgreSQL runs with the rights of the role, in any statement of a node."
	}
	names := make([]string, len(x.Path))
	for i, s := range x.Path {
		names[i] = s.Name
		if s.Owner != "" {
			severity := severity
			if x.Schema.Current == 0 {
				severity = Note // It will migrate, or has INT_LOCK.
			}
			f.add(severity, fmt.Sprintf("the schema %s of the search_path belongs to the role %s, which owns nothing that nodes use", s.Name, s.Owner), why,
				fmt.Sprintf("Unless %s is trusted with all that nodes may do, name the schemas of INT_LOCK and of observerd alone: search_path in database.url (…?search_path=NAME), or ALTER ROLE … SET search_path = ….", s.Owner))
		}
		if len(s.Creators) > 0 {
			who := strings.Join(s.Creators, ", ")
			severity := severity
			if x.Schema.Current == 0 && !slices.Contains(s.Creators, "PUBLIC") {
				severity = Note // One of them will migrate.
			}
			f.add(severity, fmt.Sprintf("the schema %s of the search_path is open: %s may create in it", s.Name, who), why,
				fmt.Sprintf("REVOKE CREATE ON SCHEMA %s FROM %s; or give the tables a schema of their own, as deploy/sql/coordination.sql does.", s.Name, who))
		}
		if len(s.Strangers) > 0 {
			f.add(severity, fmt.Sprintf("the schema %s of the search_path has what belongs to others: %s", s.Name, strings.Join(s.Strangers, ", ")), why,
				"Review it, and drop it; or put the tables into a schema of their own, as deploy/sql/coordination.sql does.")
		}
	}
	f.fine("nobody but the owner puts anything into the schemas of the search_path (%s)", strings.Join(names, ", "))
}
