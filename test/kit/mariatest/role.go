package mariatest

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"

	"github.com/observerd/observerd/test/kit/servertest"
)

// NewRole makes an account that may log in with a password and nothing else,
// and returns the given database's URL for it. The grants follow GRANT and
// precede TO, such as "SELECT ON orders" or "PROCESS ON *.*"; a table without a
// database is one of the URL's. The account is dropped when the test ends.
func NewRole(t testing.TB, databaseURL string, grants ...string) string {
	t.Helper()
	name, password := "role_"+strings.ToLower(rand.Text())[:20], rand.Text()
	account := quote(name) + "@'%'"
	statements := []string{"CREATE USER " + account + " IDENTIFIED BY '" + password + "'"}
	for _, grant := range grants {
		statements = append(statements, "GRANT "+grant+" TO "+account)
	}
	ctx, cancel := context.WithTimeout(t.Context(), databaseTimeout)
	defer cancel()
	t.Cleanup(func() { dropRole(t, databaseURL, account) })
	if err := execute(ctx, databaseURL, statements...); err != nil {
		t.Fatalf("create an account for the test: %v", err)
	}
	parsed, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatalf("read the URL of the database: %v", err)
	}
	parsed.User = url.UserPassword(name, password)
	return parsed.String()
}

func dropRole(t testing.TB, databaseURL, account string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	if err := execute(ctx, servertest.WithDatabase(databaseURL, ""), "DROP USER IF EXISTS "+account); err != nil {
		t.Errorf("drop the account of the test: %v", err)
	}
}
