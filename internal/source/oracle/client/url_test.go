package client_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/source/oracle/client"
)

const descriptor = "(DESCRIPTION=(ADDRESS_LIST=(ADDRESS=(PROTOCOL=TCP)(HOST=h1)(PORT=1521))(ADDRESS=(PROTOCOL=TCP)(HOST=h2)(PORT=1522)))" +
	"(CONNECT_DATA=(SERVICE_NAME=WMS)))"

var secured = strings.ReplaceAll(strings.ReplaceAll(descriptor, "PROTOCOL=TCP", "PROTOCOL=TCPS"), "WMS)))",
	`WMS))(SECURITY=(SSL_SERVER_CERT_DN="CN=db,O=acme")))`)

func TestParseURL(t *testing.T) {
	base := client.Target{User: "obs", Password: "pw", Servers: []string{"db:1521"}, Service: "WMS", Verify: true}
	with := func(change func(*client.Target)) client.Target {
		target := base
		change(&target)
		return target
	}
	for text, want := range map[string]client.Target{
		"oracle://obs:pw@db:1521/WMS":  base,
		"oracle://obs:pw@db/WMS":       base,
		"oracle://obs:pw@db:1521/WMS/": base,
		"oracle://obs:pw@db:1600/wms.example.com": with(func(t *client.Target) {
			t.Servers, t.Service = []string{"db:1600"}, "wms.example.com"
		}),
		"oracle://obs:pw@[::1]/WMS":          with(func(t *client.Target) { t.Servers = []string{"[::1]:1521"} }),
		"oracle://obs:pw@[::1]:99/WMS":       with(func(t *client.Target) { t.Servers = []string{"[::1]:99"} }),
		"oracle://obs:pw@db:1521/?SID=XE":    with(func(t *client.Target) { t.Service, t.SID = "", "XE" }),
		"oracle://obs:pw@db:1521?sid=XE":     with(func(t *client.Target) { t.Service, t.SID = "", "XE" }),
		"oracle://obs:pw@db/WMS?server=h2:7": with(func(t *client.Target) { t.Servers = []string{"db:1521", "h2:7"} }),
		"oracle://obs:pw@db/WMS?server=h2:1600&SERVER=h3": with(func(t *client.Target) {
			t.Servers = []string{"db:1521", "h3:1521", "h2:1600"}
		}),
		"oracle://obs:pw@/WMS?server=h2&server=h3:1522": with(func(t *client.Target) { t.Servers = []string{"h2:1521", "h3:1522"} }),
		"oracle://obs:pw@/?connect=" + url.QueryEscape(descriptor): with(func(t *client.Target) {
			t.Servers, t.Service, t.Descriptor = nil, "", descriptor
		}),
		"oracle://obs:pw@/?connect=" + url.QueryEscape(secured): with(func(t *client.Target) {
			t.Servers, t.Service, t.Descriptor, t.TLS = nil, "", secured, true
		}),
		"oracle://obs:pw@db:2484/WMS?ssl=true": with(func(t *client.Target) { t.Servers, t.TLS = []string{"db:2484"}, true }),
		"oracle://obs:pw@db/WMS?SSL=enable&ssl%20verify=FALSE": with(func(t *client.Target) {
			t.TLS, t.Verify = true, false
		}),
		"oracle://obs:pw@db/WMS?wallet=/etc/w&wallet_password=a%40b%26c": with(func(t *client.Target) {
			t.TLS, t.Wallet, t.WalletPassword = true, "/etc/w", "a@b&c"
		}),
	} {
		got, err := client.ParseURL(text)
		if err != nil || !same(got, want) {
			t.Errorf("%s: %#v %v, want %v", text, fields(got), err, fields(want))
		}
	}
}

func fields(t client.Target) string {
	return fmt.Sprint(t.User, t.Password, t.Servers, t.Service, t.SID, t.Descriptor, t.TLS, t.Verify, t.Wallet, t.WalletPassword)
}

func same(a, b client.Target) bool {
	return fields(a) == fields(b) && slices.Equal(a.Servers, b.Servers)
}

func TestParseURLPasswords(t *testing.T) {
	for _, password := range []string{"p@ss/w:rd %#?&+", "ünïcödé", "a b", `"quoted"`, "%41", "://", "?ssl=false", "\t\x01"} {
		u := url.URL{Scheme: "oracle", User: url.UserPassword("o/b:s", password), Host: "db", Path: "/WMS"}
		got, err := client.ParseURL(u.String())
		if err != nil || got.Password != password || got.User != "o/b:s" {
			t.Errorf("%q came out as %q of %q: %v", password, got.Password, got.User, err)
		}
	}
}

// Every URL holds "Tiger" where a secret could be; no error may.
func TestParseURLRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                                                "percent-encoded",
		"Tiger":                                                           "percent-encoded",
		"postgres://obs:Tiger@db/WMS":                                     "use oracle://",
		"oracle:obs:Tiger@db/WMS":                                         "percent-encoded",
		"oracle://obs:Ti%ger@db/WMS":                                      "percent-encoded",
		"oracle://obs:x?Tiger=1@db/WMS":                                   "percent-encoded",
		"oracle://obs:x@y?Tiger=1@db/WMS":                                 "percent-encoded",
		"oracle://obs:x@y?Tiger&z=1@db/W":                                 "percent-encoded",
		"oracle://obs:12#Tiger@db/WMS":                                    "percent-encoded",
		"oracle://obs:12/Tiger@db/WMS":                                    "percent-encoded",
		"oracle://obs:Tiger/x@db/WMS":                                     "percent-encoded",
		"oracle://obs:Tiger\n@db/WMS":                                     "percent-encoded",
		"oracle://db/Tiger":                                               "user and the password are missing",
		"oracle://Tiger@db/WMS":                                           "password is missing",
		"oracle://Tiger:@db/WMS":                                          "password is missing",
		"oracle://:Tiger@db/WMS":                                          "user is missing",
		"oracle://sys:Tiger@db/WMS":                                       "SYS",
		"oracle://SYS:Tiger@db/WMS":                                       "SYS",
		"oracle://obs:Tiger@db":                                           "service after the host",
		"oracle://obs:Tiger@/WMS":                                         "host is missing",
		"oracle://obs:Tiger@db/a/b":                                       "service's name has characters",
		"oracle://obs:Tiger@db/W?sid=XE":                                  "only one of service, sid and connect",
		"oracle://obs:Tiger@db/?sid=X(E":                                  "SID has characters",
		"oracle://obs:Tiger@db:0/WMS":                                     "1 to 65535",
		"oracle://obs:Tiger@db:70000/WMS":                                 "1 to 65535",
		"oracle://obs:pw@db/W?server=h:Tiger":                             "1 to 65535",
		"oracle://obs:pw@db/W?server=Tiger:1:2":                           "host:port",
		"oracle://obs:pw@db/W?server=x/Tiger":                             "host:port",
		"oracle://obs:pw@db/W?Tiger%40x=1":                                "unknown option",
		"oracle://obs:pw@db/W?Tiger1=1":                                   "unknown option: there are connect",
		"oracle://obs:pw@db/W?ssl-verfy=Tiger":                            `"ssl-verfy" is unknown: use ssl-verify`,
		"oracle://obs:pw@db/W?WalletPassword=Tiger":                       "use wallet-password",
		"oracle://obs:pw@db/W?service+name=Tiger":                         `"service name" is unknown`,
		"oracle://obs:pw@db/W?ssl=Tiger":                                  "ssl is neither true nor false",
		"oracle://obs:pw@db/W?ssl-verify=Tiger":                           "ssl-verify is neither",
		"oracle://obs:pw@db/W?ssl=":                                       "one value",
		"oracle://obs:pw@db/?sid=XE&sid=Tiger":                            "one value",
		"oracle://obs:pw@db/W?ssl=%Tiger":                                 "percent-encoded",
		"oracle://obs:pw@db/W?wallet-password=Tiger":                      "without a wallet",
		"oracle://obs:pw@db/W?ssl=no&wallet=Tiger":                        "needs TLS",
		"oracle://obs:pw@db/?sid=XE&wallet=Tiger":                         "service's name",
		"oracle://obs:pw@db/?connect=(HOST%3DTiger)":                      "leave out host",
		"oracle://obs:pw@/?connect=(HOST%3DTiger":                         "parentheses",
		"oracle://obs:pw@/?connect=(A)(HOST%3DTiger)":                     "parentheses",
		"oracle://obs:pw@/?connect=(D%3D(SID%3DTiger))":                   "no (HOST=",
		"oracle://obs:pw@/?connect=(D%3D(HOST%3DTiger))":                  "no (SERVICE_NAME=",
		"oracle://obs:pw@/?ssl=on&connect=" + url.QueryEscape(descriptor): "contradicts",
	} {
		_, err := client.ParseURL(text)
		switch {
		case err == nil:
			t.Errorf("%q was accepted", text)
		case !strings.Contains(err.Error(), want):
			t.Errorf("%q: %v; want %q", text, err, want)
		case strings.Contains(err.Error(), "Tiger"):
			t.Errorf("%q: the error repeats a secret: %v", text, err)
		}
	}
}

func TestTargetHidesItsSecrets(t *testing.T) {
	target, err := client.ParseURL("oracle://obs:Tiger@db/WMS?wallet=/w&wallet-password=Tiger")
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if text := fmt.Sprintf(verb, target); strings.Contains(text, "Tiger") || !strings.Contains(text, "db:1521/WMS") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
}
