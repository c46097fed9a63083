package redislock_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/lock/redislock"
	"github.com/observerd/observerd/test/kit/redistest"
)

// settings are those of a section of the configuration with that URL.
func settings(t *testing.T, url string) *redislock.Settings {
	t.Helper()
	s := &redislock.Settings{Notify: true}
	if err := s.URL.UnmarshalText([]byte(url)); err != nil {
		t.Fatal(err)
	}
	return s
}

// probed checks that the probe finds only what has one of these texts, a warning with a ? first.
func probed(t *testing.T, s *redislock.Settings, want ...string) {
	t.Helper()
	var texts []string
	for _, f := range s.For("r").Probe(t.Context()) {
		text := f.Err.Error()
		if f.Warning {
			text = "?" + text
		}
		texts = append(texts, text)
		if strings.Contains(text, "secret") {
			t.Errorf("the password is in %q", text)
		}
	}
	fits := len(texts) == len(want)
	for i := range min(len(texts), len(want)) {
		mark, words, _ := strings.Cut(want[i], " ")
		fits = fits && strings.HasPrefix(texts[i], "?") == (mark == "?") && strings.Contains(texts[i], words)
	}
	if !fits {
		t.Errorf("found %q, want %q", texts, want)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	probed(t, settings(t, s.URL()))
	s.Must(t, "CONFIG SET maxmemory 1gb")
	probed(t, settings(t, s.URL())) // It refuses, and evicts nothing.
	s.Must(t, "CONFIG SET maxmemory-policy allkeys-lru")
	probed(t, settings(t, s.URL()), "? maxmemory-policy allkeys-lru")
	s.Must(t, "CONFIG SET maxmemory 0")
	probed(t, settings(t, s.URL()))
	probed(t, settings(t, redistest.Replica(t, s).URL()), "! name the master")

	user := func(rights string) *redislock.Settings {
		t.Helper()
		s.Must(t, "ACL SETUSER app reset on >secret "+rights)
		return settings(t, "redis://app:secret@"+s.Address())
	}
	probed(t, user("~* &* +@read +@write +@scripting +@pubsub +@connection +time +info"))
	probed(t, user("~* &* +@read +@write +@scripting +@pubsub +@connection +time"), "? does not say its version")
	probed(t, user("~* &* +@all -hset -set -time -publish"), "! +time +set +hset +publish")
	probed(t, user("~* &* +@all -evalsha -eval"), "! +evalsha +eval")
	probed(t, user("~s:* ~{s:* &* +@all"), "! ~r:* ~{r:*")
	probed(t, user("~* &s-channel:* +@all"), "? &REGION-channel:*")
	probed(t, user(strings.ReplaceAll(redislock.ACLRule, "REGION", "r")))
	quiet := user("~* resetchannels +@all")
	quiet.Notify = false
	probed(t, quiet)
	probed(t, user("~* &* -@all +ping"), "? does not say", "! +evalsha")
	probed(t, settings(t, "redis://app:secret2@"+s.Address()), "! WRONGPASS")

	if size := client(t, s.URL()).DBSize(t.Context()).Val(); size != 0 {
		t.Errorf("the probes have written %d keys", size)
	}
	s.Kill(t)
	probed(t, settings(t, s.URL()), "! does not answer")
}

// TestProbeOfVersion has a server say of which version it is.
func TestProbeOfVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string][]string{
		"6.2.14": {"! version 6.2.14; locks need Redis 7.0"}, "7.0.0": nil, "8.4.0": nil, "10.0.1": nil, "unheard": nil,
	} {
		info := "role:master\r\nredis_version:" + version + "\r\n"
		s := answering(t, func(command string) string {
			switch command {
			case "info":
				return fmt.Sprintf("$%d\r\n%s\r\n", len(info), info)
			case "hello":
				return "-ERR unknown command\r\n"
			}
			return "+OK\r\n"
		})
		probed(t, settings(t, "redis://"+s), want...)
	}
}

func TestProbeOfClusters(t *testing.T) {
	t.Parallel()
	alone, one := redistest.Start(t), redistest.Cluster(t, 1)[0]
	probed(t, settings(t, one.URL()), "! set cluster: true")
	s := settings(t, one.URL())
	s.Cluster = true
	probed(t, s)
	s = settings(t, alone.URL())
	s.Cluster = true
	probed(t, s, "! leave out cluster")
}

type report map[string]string

func (r report) Reject(key, problem string) { r[key] = problem }

func (r report) Warn(key, problem string) { r[key] = "?" + problem }

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(s *redislock.Settings)
		at     []string
	}{
		"nothing more":         {func(*redislock.Settings) {}, nil},
		"tls without rediss":   {func(s *redislock.Settings) { s.TLS = field.TLS{CAFile: "x"} }, []string{"tls"}},
		"a node without port":  {func(s *redislock.Settings) { s.Nodes, s.Cluster = []string{"host"}, true }, []string{"nodes"}},
		"nodes of nothing":     {func(s *redislock.Settings) { s.Nodes = []string{"host:1"} }, []string{"url"}},
		"a cluster's master":   {func(s *redislock.Settings) { s.Cluster, s.Master = true, "m" }, []string{"url"}},
		"legacy in a cluster":  {func(s *redislock.Settings) { s.Cluster, s.Legacy = true, legacies() }, []string{"legacy"}},
		"no SUBJECT/PREDICATE": {func(s *redislock.Settings) { s.Legacy = map[string]string{"a": "b"} }, []string{"legacy"}},
	} {
		s := settings(t, "redis://host:1")
		tc.change(s)
		r := report{}
		s.Check(r)
		var at []string
		for key := range r {
			at = append(at, key)
		}
		if !slices.Equal(at, tc.at) {
			t.Errorf("%s: %v, want %v", name, r, tc.at)
		}
	}
}

// TestSettingsSayWhatTheirProviderHas compares the two.
func TestSettingsSayWhatTheirProviderHas(t *testing.T) {
	t.Parallel()
	for _, notify := range []bool{true, false} {
		s := settings(t, "redis://host:1")
		s.Notify = notify
		p := open(t, redislock.Options{URL: "redis://host:1", Quiet: !notify})
		if got, want := s.Capabilities().List(), p.Capabilities().List(); !reflect.DeepEqual(got, want) {
			t.Errorf("with notify: %t the settings say %v, the provider %v", notify, got, want)
		}
	}
}

// Two providers with one database would keep the same locks, whoever logs on.
func TestTargetIsTheDatabase(t *testing.T) {
	t.Parallel()
	place := func(url string) string {
		_, place := settings(t, url).Target()
		return place
	}
	if place("redis://a:secret@host/1") != place("redis://b@host:6379/1") {
		t.Error("another user is another place")
	}
	if place("redis://host/1") == place("redis://host/2") || place("redis://host/1") == place("redis://other/1") {
		t.Error("another database is the same place")
	}
	if strings.Contains(place("redis://a:secret@host/1"), "secret") {
		t.Error("the place has the password")
	}
}
