package observer_test

import (
	"context"
	"errors"
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

// A node whose hashes are others is refused before its definition replaces that of the nodes
// that can poll.
func TestOtherHashesReplaceNoDefinition(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange)
	s.db.Clock, s.spec.Loaded = s.src.Now, s.src.Now
	s.src.SetClock(1000)
	define := func(definition string, redact map[string]observer.Redaction, key string) {
		s.src.Pass(10)
		s.spec.Definition = func(context.Context, []string) (string, error) { return definition, nil }
		s.spec.Query.Redact, s.spec.Query.HashKey = redact, observer.NewHashKey(key)
	}
	hash := map[string]observer.Redaction{"ID": observer.RedactHash}
	s.src.SetKeyColumns(observer.KeyColumn{Column: observer.Column{Name: "id", Type: "text"}}.Hashed(observer.NewHashKey("ours")))
	define("ours", hash, "ours")
	s.put(0, 5)
	s.poll()
	before := s.db.Cursor(stream)
	define("another key", hash, "theirs")
	for range 2 {
		if _, err := s.tryPoll(); !errors.Is(err, observer.ErrQueryChanged) || !strings.Contains(err.Error(), "--forget") {
			t.Fatalf("got %v", err)
		}
		define("no hash", nil, "")
	}
	equal(t, "cursor", s.db.Cursor(stream), before)
	define("ours", hash, "ours")
	s.put(5, 2)
	s.poll()
	equal(t, "events", len(s.db.Events(stream)), 7)
}
