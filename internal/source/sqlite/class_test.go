package sqlite_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/internal/source/sqlite"
)

// TestKeysTellClasses reads keys that a column without a type keeps apart, and one with a
// type does not.
func TestKeysTellClasses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "orders.db")
	owner := openWriter(t, path)
	s := open(t, sqlite.Options{URL: "sqlite:" + path})
	values := []struct{ literal, key string }{
		{"1", "1"},
		{"'1'", "text:1"},
		{"x'31'", "blob:31"},
		{"31", "31"},
		{"1.5", "1.5"},
		{"'1.5'", "text:1.5"},
		{"'1e400'", "text:1e400"},
		{"9e999", "+Inf"},
		{"'+Inf'", "text:+Inf"},
		{"'order-1'", "order-1"},
		{"'text:1'", "text:text:1"},
		{"'blob:31'", "text:blob:31"},
		{"' 1'", " 1"},
	}
	exec(t, owner, "CREATE TABLE untyped (k PRIMARY KEY)")
	exec(t, owner, "CREATE TABLE blobs (k BLOB PRIMARY KEY)")
	exec(t, owner, "CREATE TABLE texts (k TEXT)")
	want := make([]string, len(values))
	for i, v := range values {
		for _, table := range []string{"untyped", "blobs", "texts"} {
			exec(t, owner, "INSERT INTO "+table+" VALUES ("+v.literal+")")
		}
		want[i] = v.key
	}
	slices.Sort(want)
	for _, q := range []observer.Query{{Table: "untyped"}, {Table: "blobs"}, {SQL: "SELECT k FROM untyped"}} {
		q.Key = []string{"k"}
		if got := readKeys(t, s, q); !slices.Equal(got, want) {
			t.Errorf("%+v: keys = %q, want %q", q, got, want)
		}
	}
	typed := []string{" 1", "+Inf", "1", "1", "1.5", "1.5", "1e400", "31", "31", "Inf", "blob:31", "order-1", "text:1"}
	if got := readKeys(t, s, observer.Query{Table: "texts", Key: []string{"k"}}); !slices.Equal(got, typed) {
		t.Errorf("keys of a column with a type = %q, want %q", got, typed)
	}
}

func readKeys(t *testing.T, s *sqlite.Source, q observer.Query) []string {
	t.Helper()
	var keys []string
	for _, r := range sourcetest.ReadAll(t, s, q, observer.Range{}) {
		keys = append(keys, r.Key)
	}
	slices.Sort(keys)
	return keys
}
