package pgtest

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// NewRole makes a role that may log in with a password and nothing else, and
// returns the given database's URL for it. The grants follow GRANT and precede
// TO, such as "SELECT ON orders" or "pg_read_all_stats". The role is dropped
// when the test ends, together with what it owns in that database.
func NewRole(t testing.TB, databaseURL string, grants ...string) string {
	t.Helper()
	name, password := "role_"+strings.ToLower(rand.Text()), rand.Text()
	statements := []string{"CREATE ROLE " + quote(name) + " LOGIN PASSWORD '" + password + "'"}
	for _, grant := range grants {
		statements = append(statements, "GRANT "+grant+" TO "+quote(name))
	}
	ctx, cancel := context.WithTimeout(t.Context(), databaseTimeout)
	defer cancel()
	t.Cleanup(func() { dropRole(t, databaseURL, name) })
	// Rights on one object that two tests grant at once fail, with "tuple
	// concurrently updated".
	granting.Lock()
	err := Execute(ctx, databaseURL, statements...)
	granting.Unlock()
	if err != nil {
		t.Fatalf("create a role for the test: %v", err)
	}
	parsed, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatalf("read the URL of the database: %v", err)
	}
	parsed.User = url.UserPassword(name, password)
	return parsed.String()
}

// granting is held by the test that grants.
var granting sync.Mutex

func dropRole(t testing.TB, databaseURL, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	granting.Lock()
	err := Execute(ctx, databaseURL, "DROP OWNED BY "+quote(name), "DROP ROLE "+quote(name))
	granting.Unlock()
	if err != nil {
		t.Errorf("drop the role of the test: %v", err)
	}
}
