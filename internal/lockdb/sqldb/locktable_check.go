package sqldb

import (
	"fmt"
	"slices"
	"strings"
)

// check returns an [ErrMixedTable] with all that is wrong, each with what to do
// about it.
func (t lockTable) check() error {
	if t.Name == "" {
		return fmt.Errorf("%w: there is none in the search_path of this role, or the role has no USAGE on its schema; "+
			"name the schema in database.url (…?search_path=NAME), and if the table was dropped recreate it with Spring's own script (schema-postgresql.sql)", ErrMixedTable)
	}
	if t.Kind != "r" && t.Kind != "p" {
		return fmt.Errorf("%w: %s is not a table, so nothing is known of the key that keeps two holders apart; put the schema of the table itself first in the search_path", ErrMixedTable, t.Name)
	}
	wrong := t.missing()
	if len(wrong) == 0 {
		wrong = slices.Concat(t.misfits(), t.expiry(), t.strangers(), t.keyless())
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s: %s", ErrMixedTable, t.Name, strings.Join(wrong, "; "))
}

// texts are the columns that hold an id. A region that is too long for its
// column is refused with an error, so its length is its users' affair.
var texts = []struct {
	name string
	size int
}{{"lock_key", 36}, {"region", 1}, {"client_id", 36}}

func (t lockTable) missing() (wrong []string) {
	for _, name := range []string{"lock_key", "region", "client_id", "created_date"} {
		if _, ok := t.column(name); !ok {
			wrong = append(wrong, "the column "+strings.ToUpper(name)+" is missing, so it is not Spring's table; "+
				"if that is in another schema, put it first in the search_path")
		}
	}
	return wrong
}

func (t lockTable) misfits() (wrong []string) {
	for _, w := range texts {
		c, ok := t.column(w.name)
		switch {
		case !ok:
		case !slices.Contains([]string{"character", "bpchar", "character varying", "text"}, c.Type):
			wrong = append(wrong, fmt.Sprintf("%s is %s, Spring's is a text, and so are the keys and terms of our nodes; ALTER TABLE %s ALTER %s TYPE VARCHAR(%d)",
				strings.ToUpper(w.name), c.Type, t.Name, w.name, max(w.size, 36)))
		case c.Size >= 0 && c.Size < w.size:
			wrong = append(wrong, fmt.Sprintf("%s holds %d characters, an id has %d, and Spring takes the error for a lock that another holds; ALTER TABLE %s ALTER %[1]s TYPE CHAR(%[3]d)",
				strings.ToUpper(w.name), c.Size, w.size, t.Name))
		}
	}
	for _, name := range []string{"created_date", "expired_after"} {
		c, ok := t.column(name)
		switch {
		case !ok:
		case c.Type != "timestamp without time zone":
			wrong = append(wrong, fmt.Sprintf("%s is %s, Spring's is a TIMESTAMP without a zone that holds UTC; while no node works: ALTER TABLE %s ALTER %[1]s TYPE TIMESTAMP, after DELETE FROM %[3]s",
				strings.ToUpper(name), c.Type, t.Name))
		case c.Size >= 0 && c.Size < 3:
			wrong = append(wrong, fmt.Sprintf("%s keeps %d decimals of a second, so leases end too early or too late; ALTER TABLE %s ALTER %[1]s TYPE TIMESTAMP",
				strings.ToUpper(name), c.Size, t.Name))
		}
	}
	return wrong
}

// expiry refuses the table of a migration to Spring Integration 7 that is half
// done. As long as nodes up to 6 can write rows without an expiry, the two
// generations do not see each other's locks.
func (t lockTable) expiry() []string {
	const older = "so nodes of Spring Integration up to 6 can still write rows, without an expiry of their own, "
	c, ok := t.column("expired_after")
	switch {
	case !ok:
		return nil
	case c.Default != "":
		return []string{fmt.Sprintf("EXPIRED_AFTER has the default %s, %sand nodes of 7 take those locks at once or never; "+
			"stop the nodes up to 6, then ALTER TABLE %s ALTER expired_after DROP DEFAULT, ALTER expired_after SET NOT NULL", c.Default, older, t.Name)}
	case c.Nullable:
		return []string{fmt.Sprintf("EXPIRED_AFTER may be NULL, %sand nodes of 7 never take those locks; "+
			"stop the nodes up to 6, then DELETE FROM %s WHERE expired_after IS NULL, and ALTER TABLE %[2]s ALTER expired_after SET NOT NULL", older, t.Name)}
	}
	return nil
}

// strangers are columns that no client fills in.
func (t lockTable) strangers() (wrong []string) {
	known := []string{"lock_key", "region", "client_id", "created_date", "expired_after"}
	for _, c := range t.Columns {
		if !slices.Contains(known, c.Name) && !c.Nullable && c.Default == "" {
			wrong = append(wrong, fmt.Sprintf("the column %s must be filled in, and neither Spring nor this program knows it; ALTER TABLE %s ALTER %q DROP NOT NULL", c.Name, t.Name, c.Name))
		}
	}
	return wrong
}

func (t lockTable) keyless() []string {
	for _, columns := range t.Unique {
		if slices.Equal(columns, []string{"lock_key", "region"}) {
			return nil
		}
	}
	return []string{fmt.Sprintf("there is no primary key of LOCK_KEY and REGION, so two nodes can hold one lock; "+
		"while no node works: DELETE FROM %s, then ALTER TABLE %[1]s ADD CONSTRAINT int_lock_pk PRIMARY KEY (lock_key, region)", t.Name)}
}
