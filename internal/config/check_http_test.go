package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/webtest"
)

// webConfig writes a web configuration beside a certificate, a key and the
// certificate of the authority.
func webConfig(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	authority := webtest.NewAuthority(t)
	authority.WriteServer(dir, "server")
	authority.WriteAuthority(dir)
	return webtest.WriteConfig(t, dir, text)
}

const mutualTLS = "tls_server_config: {cert_file: server.pem, key_file: server.key, client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.pem}\n"

// TestWhoMayBeLetIn tries each kind of address with each kind of web
// configuration.
func TestWhoMayBeLetIn(t *testing.T) {
	t.Parallel()
	local := []string{"127.0.0.1:8080", "127.1.2.3:8080", "[::1]:0", "localhost:8080", "LOCALHOST:80", "[::ffff:127.0.0.1]:1", ""}
	open := []string{":8080", "0.0.0.0:8080", "[::]:8080", "10.0.0.5:8080", "node-a:8080", "localhost.example.org:1", "[fe80::1%eth0]:1", "127.0.0.1.example.org:1"}
	users := webtest.User(t, "prometheus", "secret")
	for name, tc := range map[string]struct {
		web     string
		missing string
	}{
		"none":                  {"", "a web-config with TLS and authentication"},
		"TLS alone":             {webtest.TLS, "it has TLS and no authentication"},
		"users alone":           {users, "TLS is missing"},
		"a limit alone":         {"rate_limit: {interval: 1s, burst: 5}\n", "TLS is missing"},
		"TLS and users":         {webtest.TLS + users, ""},
		"verified certificates": {mutualTLS, ""},
		"any certificate":       {strings.Replace(mutualTLS, "RequireAndVerify", "RequireAny", 1), "no authentication"},
		"optional certificate":  {strings.Replace(mutualTLS, "RequireAndVerifyClientCert", "VerifyClientCertIfGiven", 1), "no authentication"},
		// A certificate of any public authority would be accepted.
		"the system's authorities": {strings.Replace(mutualTLS, ", client_ca_file: ca.pem", "", 1), "no authentication"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := ""
			if tc.web != "" {
				file = webConfig(t, tc.web)
			}
			for _, listen := range append(slices.Clone(local), open...) {
				set := func(o *config.Options) {
					o.Environ = []string{"OBSERVERD_HTTP_LISTEN=" + listen, "OBSERVERD_HTTP_WEB_CONFIG=" + file}
				}
				if slices.Contains(local, listen) || tc.missing == "" {
					if cfg := load(t, minimal, set); cfg.HTTP.Exposed() {
						t.Errorf("%q is said to be exposed", listen)
					}
					continue
				}
				got := refuse(t, minimal, set)
				if !strings.Contains(got, tc.missing) || strings.Contains(got, "\n") || !strings.HasPrefix(got, "OBSERVERD_HTTP_") {
					t.Errorf("%q: %s", listen, got)
				}
			}
		})
	}
}

func TestInsecureIsWarnedOf(t *testing.T) {
	t.Parallel()
	complete := webConfig(t, webtest.TLS+webtest.User(t, "prometheus", "secret"))
	for name, tc := range map[string]struct {
		listen, web, warning string
		exposed              bool
	}{
		"everybody":  {"0.0.0.0:8080", "", "every host that can reach", true},
		"no users":   {"0.0.0.0:8080", webConfig(t, webtest.TLS), "every host that can reach", true},
		"loopback":   {"127.0.0.1:8080", "", "insecure has no effect", false},
		"protected":  {"0.0.0.0:8080", complete, "insecure has no effect", false},
		"no address": {"", "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, warnings, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{write(t, minimal)}, Environ: []string{
				"OBSERVERD_HTTP_INSECURE=true", "OBSERVERD_HTTP_LISTEN=" + tc.listen, "OBSERVERD_HTTP_WEB_CONFIG=" + tc.web,
			}})
			if err != nil {
				t.Fatal(err)
			}
			if tc.warning == "" && len(warnings) > 0 || tc.warning != "" && (len(warnings) != 1 || !strings.HasPrefix(warnings[0].String(), "OBSERVERD_HTTP_INSECURE: "+tc.warning)) {
				t.Errorf("warnings %v", warnings)
			}
			if cfg.HTTP.Exposed() != tc.exposed {
				t.Errorf("exposed %v", cfg.HTTP.Exposed())
			}
		})
	}
}

// TestProtectionIsReadAgain changes the file after it was loaded.
func TestProtectionIsReadAgain(t *testing.T) {
	t.Parallel()
	file := webConfig(t, webtest.TLS+webtest.User(t, "prometheus", "secret"))
	cfg := load(t, minimal, environ("OBSERVERD_HTTP_LISTEN=0.0.0.0:0", "OBSERVERD_HTTP_WEB_CONFIG="+file))
	if err := cfg.HTTP.Protected(); err != nil {
		t.Errorf("with users: %v", err)
	}
	if cfg.HTTP.Plain() {
		t.Error("TLS is said not to be needed")
	}
	if scheme := cfg.HTTP.Scheme(); scheme != "https" {
		t.Errorf("the scheme is %s", scheme)
	}
	for _, text := range []string{
		webtest.TLS, webtest.User(t, "prometheus", "secret"), "", "tls_server_config: {", "unknown: 1\n",
		strings.Replace(webtest.TLS, "}", ", min_version: TLS10}", 1) + webtest.User(t, "prometheus", "secret"),
	} {
		webtest.WriteConfig(t, filepath.Dir(file), text)
		if cfg.HTTP.Protected() == nil {
			t.Errorf("protected by %q", text)
		}
	}
	if err := os.Remove(file); err != nil || cfg.HTTP.Protected() == nil {
		t.Errorf("protected by a file that is not there (%v)", err)
	}
}

func TestBadWebConfigs(t *testing.T) {
	t.Parallel()
	other := t.TempDir()
	webtest.NewAuthority(t).WriteServer(other, "other")
	for name, tc := range map[string]struct{ text, want string }{
		"key of another":     {"tls_server_config: {cert_file: server.pem, key_file: " + other + "/server.key}", "tls: private key does not match public key"},
		"key as certificate": {"tls_server_config: {cert_file: server.key, key_file: server.key}", "failed to load X509KeyPair"},
		"no certificate":     {"tls_server_config: {key_file: server.key}", "missing one of cert or cert_file"},
		"no key file":        {"tls_server_config:\n  cert_file: server.pem\n  key_file: nope.key", "3:13: "},
		"authority unused":   {"tls_server_config: {cert_file: server.pem, key_file: server.key, client_ca_file: ca.pem}", "without a Client Auth Policy"},
		"unknown version":    {"tls_server_config: {min_version: hunter2}", "a key or value cannot be read; see the documentation"},
		"unknown cipher":     {"tls_server_config: {cipher_suites: [hunter2]}", "a key or value cannot be read; see the documentation"},
		"unknown key":        {"basic_auth_users: {}\nhunter2: 1", ":2:1: a key or value cannot be read"},
		"old TLS":            {"tls_server_config: {cert_file: server.pem, key_file: server.key, min_version: TLS10}", ":1:79: TLS before 1.2 is not safe"},
		"two documents":      {"rate_limit: {burst: 1}\n---\nhunter2: 1", "a second document begins here"},
		"list":               {"- hunter2", "this is not a web configuration; use keys such as tls_server_config"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := webConfig(t, tc.text)
			got := refuse(t, "http: {web-config: "+file+"}\n"+minimal)
			if !strings.HasPrefix(got, "config.yaml:1:20: "+file+":") || !strings.Contains(got, tc.want) || strings.Contains(got, "hunter2") {
				t.Errorf("got %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestWebConfigFromVariable: systemd names the folder of credentials in one.
func TestWebConfigFromVariable(t *testing.T) {
	t.Parallel()
	file := webConfig(t, webtest.TLS)
	cfg := load(t, `http: {web-config: "${FOLDER}/web.yml", socket: "${FOLDER}/http.sock"}`+minimal, environ("FOLDER="+filepath.Dir(file)))
	if cfg.HTTP.WebConfig != file || cfg.HTTP.Socket != filepath.Join(filepath.Dir(file), "http.sock") {
		t.Errorf("%+v", cfg.HTTP)
	}
}

func TestAllowedHosts(t *testing.T) {
	t.Parallel()
	want := []string{"a.example.org", "b", "xn--gre-6ka.example.org"}
	for _, cfg := range []*config.Config{
		load(t, "http: {allowed-hosts: [A.example.org., b, xn--gre-6ka.example.org]}"+minimal),
		load(t, "http: {allowed-hosts: [c]}"+minimal, environ("OBSERVERD_HTTP_ALLOWED_HOSTS=a.example.org, b,xn--gre-6ka.example.org")),
		load(t, minimal, func(o *config.Options) {
			o.Overrides = map[string]any{"http.allowed-hosts": "a.example.org b xn--gre-6ka.example.org"}
		}),
	} {
		if !slices.Equal(cfg.HTTP.AllowedHosts, want) {
			t.Errorf("got %q, want %q", cfg.HTTP.AllowedHosts, want)
		}
	}
	if one := load(t, "http: {allowed-hosts: node}"+minimal); !slices.Equal(one.HTTP.AllowedHosts, []string{"node"}) {
		t.Errorf("one name: %q", one.HTTP.AllowedHosts)
	}
	got := refuse(t, "http:\n  allowed-hosts: [a, b]"+minimal, environ("OBSERVERD_HTTP_ALLOWED_HOSTS=a:1"))
	if want := `OBSERVERD_HTTP_ALLOWED_HOSTS: "a:1" is not the name of a host; use the name alone, such as metrics.example.org, without scheme, port, path and wildcard, and other alphabets as xn--…`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
