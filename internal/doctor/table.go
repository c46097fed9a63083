package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/status"
)

const (
	expiredAfter = "expired_after"
	springSeven  = "Spring Integration 7"
	springSix    = "Spring Integration up to 6"
)

// table checks that INT_LOCK is one of the two generations of Spring's table.
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
	if t.Kind != "table" {
		f.add(Problem, "INT_LOCK is not a table but of the kind "+t.Kind, "Whether its rows keep two holders apart cannot be told.", "Name the table itself, by search_path in database.url.")
	}
	columns(x, f)
	expiry(x, f)
	uniqueness(t, f)
	additions(t, f)
	if t.Refused != "" && !f.have(Problem) {
		f.add(Problem, t.Refused, "A node that starts ends at once, and says this.", "What the message says.")
	}
	generation := "4 columns: the table of " + springSix
	if _, ok := t.Has(expiredAfter); ok {
		generation = "EXPIRED_AFTER: the table of " + springSeven
	}
	f.fine("INT_LOCK has %s", generation)
}

// wanted are the columns that each generation has, with the least length and,
// on PostgreSQL, the type that those of time need.
var wanted = [...]struct {
	name     string
	length   int
	time     bool
	required bool
}{
	{"lock_key", 36, false, true},
	{"region", 100, false, true},
	{"client_id", 36, false, true},
	{"created_date", 0, true, true},
	{expiredAfter, 0, true, false},
}

func columns(x *input, f *findings) {
	for _, w := range wanted {
		c, ok := x.Table.Has(w.name)
		switch {
		case !ok && w.required:
			f.add(Problem, fmt.Sprintf("INT_LOCK has no column %s", strings.ToUpper(w.name)), "It is neither generation of Spring's table; nodes refuse to work with it.",
				"Is it a table of somebody else? If it is Spring's, make it anew by its own script (schema-postgresql.sql).")
		case ok && w.length > 0 && c.Length > 0 && c.Length < w.length:
			f.add(shortness(x, w.name, c.Length), fmt.Sprintf("%s holds %d characters, Spring's has %d", strings.ToUpper(w.name), c.Length, w.length),
				"A longer value is refused. Spring takes that error for a lock that another holds, so that it silently never gets it.",
				fmt.Sprintf("ALTER TABLE INT_LOCK ALTER %s TYPE VARCHAR(%d).", strings.ToUpper(w.name), w.length))
		case ok && w.time && x.Backend == "postgres" && c.Type != "timestamp without time zone":
			f.add(Problem, fmt.Sprintf("%s is a %s, Spring's is a TIMESTAMP without a zone", strings.ToUpper(w.name), c.Type),
				"Java writes the wall clock of UTC, which the server then takes for that of the session's zone: every row is off by it.",
				fmt.Sprintf("While no node works: ALTER TABLE INT_LOCK ALTER %s TYPE TIMESTAMP USING %[1]s AT TIME ZONE 'UTC'.", strings.ToUpper(w.name)))
		}
	}
}

// shortness judges a length that is less than Spring's: only a region may be
// as short as the regions that there are.
func shortness(x *input, column string, length int) Severity {
	if column != "region" {
		return Problem
	}
	for _, l := range x.want.Locks {
		if len(l.Region) > length {
			return Problem
		}
	}
	return Warning
}

// expiry finds settings with which nodes of both generations work on one table without
// an error.
func expiry(x *input, f *findings) {
	c, ok := x.Table.Has(expiredAfter)
	if !ok {
		return
	}
	const why = "Nodes of " + springSix + " do not know the column: they would lock without an expiry of their own, and those of " + springSeven +
		" would take such a lock at once, or never. Neither says so."
	switch {
	case c.Default != "":
		f.add(Problem, "EXPIRED_AFTER has a default: "+c.Default, why, "Stop the nodes of "+springSix+", then: ALTER TABLE INT_LOCK ALTER EXPIRED_AFTER DROP DEFAULT.")
	case c.Nullable:
		f.add(Problem, "EXPIRED_AFTER may be NULL", why, "Stop the nodes of "+springSix+
			", then: DELETE FROM INT_LOCK WHERE EXPIRED_AFTER IS NULL; ALTER TABLE INT_LOCK ALTER EXPIRED_AFTER SET NOT NULL.")
	}
}

func uniqueness(t status.LockTable, f *findings) {
	for _, columns := range t.Unique {
		if slices.Equal(slices.Sorted(slices.Values(columns)), []string{"lock_key", "region"}) {
			return
		}
	}
	f.add(Problem, "no primary key holds LOCK_KEY and REGION together", "Two nodes can hold one lock in two rows; a node of observerd cannot take any, because its statement needs that key.",
		"While no node works: DELETE FROM INT_LOCK; ALTER TABLE INT_LOCK ADD CONSTRAINT INT_LOCK_PK PRIMARY KEY (LOCK_KEY, REGION).")
}

// additions reports everything that Spring's script does not create.
func additions(t status.LockTable, f *findings) {
	for _, c := range t.Columns {
		if known(c.Name) {
			continue
		}
		severity, why := Note, "Neither Spring nor observerd writes it."
		if !c.Nullable && c.Default == "" {
			severity, why = Problem, "Neither Spring nor observerd writes it, and it must not be empty: every new row is refused."
		}
		f.add(severity, "INT_LOCK has a column "+strings.ToUpper(c.Name)+" that is not Spring's", why, "Drop it, or give it a default.")
	}
	if t.Unlogged {
		f.add(Problem, "INT_LOCK is UNLOGGED", "After a crash of the server it is empty: every lock is free while its holder still works.", "ALTER TABLE INT_LOCK SET LOGGED.")
	}
	if len(t.Triggers) > 0 {
		f.add(Warning, "triggers hang on INT_LOCK: "+strings.Join(t.Triggers, ", "), "They run under the rights of each node, in the middle of every lock. One that fails stops Java nodes and ours.",
			"Drop those that nobody needs. Sessions of observerd have no search_path, so that a function without one must name the schema of all that it uses: ALTER FUNCTION … SET search_path = ….")
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

func known(column string) bool {
	for _, w := range wanted {
		if w.name == column {
			return true
		}
	}
	return false
}
