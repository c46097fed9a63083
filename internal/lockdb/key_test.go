package lockdb_test

import (
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/lockdb"
)

// The vectors were computed by a JDK: UUID.nameUUIDFromBytes, as Spring
// Integration uses it.
func TestSpringKeyIsThatOfSpring(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"foo":                                  "acbd18db-4cc2-385c-adef-654fccc4a4d8",
		"":                                     "d41d8cd9-8f00-3204-a980-0998ecf8427e",
		"0":                                    "cfcd2084-95d5-35ef-a6e7-dff9f98764da",
		"poll:orders":                          "80446051-8331-358a-a4ec-f9b625d7cee6",
		"ünï→":                                 "0957775c-4918-315c-ab75-a646257d37f7",
		"ACBD18DB-4CC2-385C-ADEF-654FCCC4A4D8": "acbd18db-4cc2-385c-adef-654fccc4a4d8",
	} {
		if got := lockdb.Key(lockdb.KeySpring, name); got != want {
			t.Errorf("key of %q is %s, want %s", name, got, want)
		}
	}
}

func TestPlainKeyStaysReadableWhileItFits(t *testing.T) {
	t.Parallel()
	fits, long := strings.Repeat("x", 36), strings.Repeat("x", 37)
	for _, name := range []string{"order-observer-poll", fits, "ACBD18DB-4CC2-385C-ADEF-654FCCC4A4D8"} {
		if got := lockdb.Key(lockdb.KeyPlain, name); got != name {
			t.Errorf("key of %q is %q", name, got)
		}
	}
	if got := lockdb.Key(lockdb.KeyPlain, long); got != lockdb.Key(lockdb.KeySpring, long) || len(got) != 36 {
		t.Errorf("key of a name that does not fit is %q", got)
	}
}
