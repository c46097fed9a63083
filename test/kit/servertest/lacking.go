package servertest

import (
	"os"
	"testing"
)

// Lacking ends a test that this machine cannot run: because of a kernel without
// namespaces for users, for example. People's machines may; where CI is set, as
// services that build for others do, it is a failure, lest a promise go untested
// and nobody notice.
func Lacking(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("this machine cannot show what CI must: "+format, args...)
	}
	t.Skipf(format, args...)
}
