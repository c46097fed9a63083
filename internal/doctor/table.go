package doctor

import (
	"fmt"
	"strings"

	"github.com/observerd/observerd/internal/status"
)

const (
	expiredAfter = "expired_after"
	springSeven  = "Spring Integration 7"
	springSix    = "Spring Integration up to 6"
)

// table checks that INT_LOCK is one of the two generations of Spring's table: a node
// says what it refuses.
func table(x *input, f *findings) {
	t := x.Table
	if t.Schema == "" {
		if x.Schema.Current > 0 {
			f.add(Problem, "there is no table INT_LOCK in the search path", "No node can take a lock.",
				"Was it dropped, or is it in another schema? Set search_path in database.url (…?search_path=NAME).")
		} else {
			f.add(Note, "there is no table INT_LOCK yet", "", "The first migration makes it. If Java nodes lock in this database, theirs is in another schema: set search_path in database.url (…?search_path=NAME).")
		}
		return
	}
	if t.Refused != "" {
		f.add(Problem, t.Refused, "A node that starts ends at once, and says this.", "What the message says.")
	}
	additions(t, f)
	generation := "4 columns: the table of " + springSix
	if t.Has(expiredAfter) {
		generation = "EXPIRED_AFTER: the table of " + springSeven
	}
	f.fine("INT_LOCK has %s", generation)
}

// additions reports what a node works with all the same.
func additions(t status.LockTable, f *findings) {
	if t.Unlogged {
		f.add(Problem, "INT_LOCK is UNLOGGED", "After a crash of the server it is empty: every lock is free while its holder still works.", "ALTER TABLE INT_LOCK SET LOGGED.")
	}
	if len(t.Triggers) > 0 {
		f.add(Warning, "triggers hang on INT_LOCK: "+strings.Join(t.Triggers, ", "), "They run under the rights of each node, in the middle of every lock. One that fails stops Java nodes and ours.",
			"Drop those that are not needed. Sessions of observerd have no search_path, so that a function without one must name the schema of all that it uses: ALTER FUNCTION … SET search_path = ….")
	}
	if len(t.Rules) > 0 {
		f.add(Problem, "rules hang on INT_LOCK: "+strings.Join(t.Rules, ", "), "They change what each statement on it does, under the rights of each node. With one for INSERT or UPDATE no node of observerd can take a lock.",
			"DROP RULE … ON INT_LOCK.")
	}
	if t.RowSecurity {
		f.add(Warning, "row level security is on for INT_LOCK", "A node that cannot see the row of another cannot take its lock over, and fails at the primary key.",
			"ALTER TABLE INT_LOCK DISABLE ROW LEVEL SECURITY, unless every node's role sees all rows.")
	}
	if len(t.Elsewhere) > 0 {
		f.add(Note, fmt.Sprintf("this node uses INT_LOCK in the schema %s; there is another one in %s", t.Schema, strings.Join(t.Elsewhere, ", ")),
			"Nodes that lock in different tables do not know of each other.", "Make sure that the Java nodes use "+t.Schema+".INT_LOCK too (currentSchema in their JDBC URL, and the prefix INT_).")
	}
}
