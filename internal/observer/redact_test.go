package observer_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
)

// TestHashIsThatOfThePage compares a hash with the example of docs/events.md, which people
// compute.
func TestHashIsThatOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	h := observer.NewHashKey(strings.Repeat("0", 32)).Hasher()
	if hash := string(h.Append(nil, []byte("4711"))); !strings.Contains(string(page), `"subject":"`+hash+`"`) {
		t.Errorf("the page has no row with the key %s", hash)
	}
	if string(h.Append(nil, []byte("4711"))) == string(h.Append(nil, []byte("4712"))) {
		t.Error("two texts have one hash")
	}
}

// TestHashKeyIsNotTold prints a query with its key in each way.
func TestHashKeyIsNotTold(t *testing.T) {
	t.Parallel()
	const secret = "c4n4ry, which is long enough to be a key"
	key := observer.NewHashKey(secret)
	other := observer.NewHashKey(secret + "!")
	if key.Fingerprint() == "" || key.Fingerprint() == other.Fingerprint() {
		t.Errorf("two keys have the fingerprints %s and %s", key.Fingerprint(), other.Fingerprint())
	}
	q := observer.Query{Table: "t", HashKey: key}
	printed := key.Fingerprint()
	for _, verb := range []string{"%v", "%+v", "%#v", "%x"} {
		printed += fmt.Sprintf(verb, q) + fmt.Sprintf(verb, []observer.Query{q})
	}
	if strings.Contains(printed, "c4n4ry") || strings.Contains(printed, fmt.Sprintf("%x", "c4n4ry")) || strings.Contains(printed, "99 52 110") {
		t.Errorf("printed: %s", printed)
	}
}
