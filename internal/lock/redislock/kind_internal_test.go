package redislock

import (
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/test/kit/redistest"
)

// settingsOf are those of a provider at that URL.
func settingsOf(t *testing.T, url, password string) *settings {
	t.Helper()
	s := &settings{Notify: true, region: "LOCKS"}
	if err := s.URL.UnmarshalText([]byte(url)); err != nil {
		t.Fatal(err)
	}
	s.Password = field.NewSecret(password)
	return s
}

// A probe says what keeps a server from keeping locks, what it takes to change that, and
// writes nothing.
func TestProbe(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-is-secret"
	master := redistest.Start(t)
	for _, rule := range []string{
		"reader on >" + secret + " ~* +@read +@connection +info",
		"lockonly on >" + secret + " ~LOCKS:* ~{LOCKS:* &LOCKS-channel:* +@all -@dangerous -@admin",
		"elsewhere on >" + secret + " ~OTHER:* ~{OTHER:* &* +@all",
		"documented on >" + secret + " " + strings.NewReplacer("REGION", "LOCKS").Replace(ACLRule),
	} {
		master.Must(t, "ACL SETUSER "+rule)
	}
	evicting := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	gone := redistest.Start(t)
	gone.Kill(t)
	for name, tc := range map[string]struct {
		settings *settings
		// want are words of the only finding; none for none.
		want    string
		warning bool
	}{
		"a master":       {settingsOf(t, master.URL(), ""), "", false},
		"its replica":    {settingsOf(t, redistest.Replica(t, master.Address()).URL(), ""), "replica", false},
		"it evicts":      {settingsOf(t, evicting.URL(), ""), "noeviction", true},
		"of a cluster":   {settingsOf(t, redistest.Cluster(t, 1)[0].URL(), ""), "cluster: true", false},
		"it is down":     {settingsOf(t, gone.URL(), ""), "does not answer", false},
		"wrong password": {settingsOf(t, "redis://reader@"+master.Address(), "not-"+secret), "password-file", false},
		"no rights":      {settingsOf(t, "redis://reader@"+master.Address(), secret), "docs/locks/redis.md", false},
		"another region": {settingsOf(t, "redis://elsewhere@"+master.Address(), secret), "region LOCKS", false},
		"it may not say": {settingsOf(t, "redis://lockonly@"+master.Address(), secret), "does not say its version", true},
		"documented":     {settingsOf(t, "redis://documented@"+master.Address(), secret), "", false},
	} {
		findings := tc.settings.Probe(t.Context())
		if tc.want == "" {
			if len(findings) != 0 {
				t.Errorf("%s: %v", name, findings)
			}
			continue
		}
		if len(findings) != 1 || findings[0].Warning != tc.warning || !strings.Contains(findings[0].Err.Error(), tc.want) || strings.Contains(findings[0].Err.Error(), secret) {
			t.Errorf("%s: %v, want %s", name, findings, tc.want)
		}
	}
	if answer, err := master.Ask(t.Context(), "DBSIZE"); err != nil || answer != ":0" {
		t.Errorf("after all probes there are keys: %s, %v", answer, err)
	}
}
