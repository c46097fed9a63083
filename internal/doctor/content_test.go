package doctor_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/lock"
)

func orderRequest(p *subject) lock.Request {
	l := p.want.Locks[0]
	return lock.Request{Key: l.Key(), Region: l.Region, TTL: l.TTL, Name: l.Name, Node: "node-a"}
}

// content is what must not change: the bytes of an SQLite file, or the locks.
func (p *subject) content(t *testing.T) string {
	t.Helper()
	if path, ok := strings.CutPrefix(p.url, "sqlite:"); ok {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x", sha256.Sum256(text))
	}
	q := admit(t, p.url)
	var text string
	err := q.db.QueryRowContext(t.Context(), `
		SELECT concat_ws(' ', (SELECT string_agg(l::text, ',' ORDER BY l.lock_key) FROM int_lock l),
		                 (SELECT string_agg(o::text, ',' ORDER BY o.lock_key) FROM obs_lock o), (SELECT last_value FROM obs_fence))`).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
