package wiring_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/locks"
)

func TestLockOptionsAreThoseOfTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := `
locks:
  region: TEAM
  subjects: tenant
  predicates: [moving]
  hierarchies: [ tenant>schema, fileset > document > page ]
  policies:
    - {id: plain}
    - {id: all, subject: tenant, predicate: moving, mode: shared, min-ttl: 10s, max-ttl: 1m, explicit-ttl: true, max-hold: 1h,
       modes: [shared, exclusive], metadata: purpose, per-node: 3, steal-by: [node-1, node-2], reason: Because}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	want := locks.Options{
		Region: "TEAM", Subjects: []string{"tenant"}, Predicates: []string{"moving"},
		Hierarchies: [][]string{{"tenant", "schema"}, {"fileset", "document", "page"}},
		Policies: []locks.Policy{
			{Name: "plain"},
			{
				Name: "all", Subject: "tenant", Predicate: "moving", Mode: locks.Shared, MinTTL: 10 * time.Second, MaxTTL: time.Minute, ExplicitTTL: true, MaxHold: time.Hour,
				Modes: []locks.Mode{locks.Shared, locks.Exclusive}, Metadata: []string{"purpose"}, PerNode: 3, StealBy: []string{"node-1", "node-2"}, Reason: "Because",
			},
		},
	}
	if got := wiring.LockOptions(cfg.Locks); !reflect.DeepEqual(got, want) {
		t.Errorf("options\n%+v\nwant\n%+v", got, want)
	}
	// A field of the policy that the configuration lacks would be the zero value above.
	all := reflect.ValueOf(want.Policies[1])
	for i := range all.NumField() {
		if all.Field(i).IsZero() {
			t.Errorf("the test says nothing of %s", all.Type().Field(i).Name)
		}
	}
}
