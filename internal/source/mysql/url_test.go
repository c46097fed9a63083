package mysql

import (
	"strings"
	"testing"
)

func TestURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]address{
		"mysql://u:p@h/db":                             {user: "u", password: "p", network: "tcp", host: "h:3306", database: "db"},
		"mariadb://u@h:3307/db":                        {user: "u", network: "tcp", host: "h:3307", database: "db"},
		"mysql://u:%40%3A%2F%3F%23%25%20@[::1]:1/d%20": {user: "u", password: "@:/?#% ", network: "tcp", host: "[::1]:1", database: "d "},
		"mysql://u@/db?socket=/run/my.sock":            {user: "u", network: "unix", host: "/run/my.sock", database: "db"},
		"mysql://u:p@h/db?tls=false":                   {user: "u", password: "p", network: "tcp", host: "h:3306", database: "db"},
	} {
		if got, err := parseURL(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for mode, verify := range map[string]bool{"tls=true": true, "tls=skip-verify": false, "tls=preferred": false, "ssl-server-name=other": true} {
		a, err := parseURL("mysql://u@h/db?" + mode)
		if err != nil || a.tls == nil || a.tls.InsecureSkipVerify == verify || a.fallback != (mode == "tls=preferred") {
			t.Errorf("%s: %+v, %v", mode, a, err)
		}
	}
}

func TestFaultyURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                           "percent-encoded",
		"orders":                                     "percent-encoded",
		"postgres://u:hunter2@h/db":                  "percent-encoded",
		"mysql://h/db":                               "percent-encoded",
		"mysql://u:hun%ter2@h/db":                    "percent-encoded",
		"mysql://u:hunter2@h:port/db":                "percent-encoded",
		"mysql://u:hun/ter2@h/db":                    "percent-encoded",
		"mysql://u:1234/hunter2@h/db":                "percent-encoded",
		"mysql://u:1234#hunter2@h/db":                "percent-encoded",
		"mysql://u:1234?hunter2@h/db":                "percent-encoded",
		"mysql://u:p@h/db?hunter2 !=x":               "percent-encoded",
		"mysql://u:hunter2@h/":                       "no database",
		"mysql://u:hunter2@/db":                      "no host",
		"mysql://u:hunter2@h/db?ssl-caa=x":           `is it "ssl-ca"?`,
		"mysql://u:hunter2@h/db?parseTime=true":      "there are tls",
		"mysql://u:hunter2@h/db?tls=yes":             "tls is true, false, skip-verify or preferred",
		"mysql://u:hunter2@h/db?tls=true&tls=false":  "one value",
		"mysql://u:hunter2@h/db?tls=false&ssl-ca=x":  "no effect",
		"mysql://u:hunter2@h/db?ssl-ca=/missing.pem": "no such file",
		"mysql://u:hunter2@h/db?ssl-key=/x.pem":      "set together",
	} {
		_, err := Open(Options{URL: text})
		switch {
		case err == nil:
			t.Errorf("Open(%q) succeeded", text)
		case strings.Contains(err.Error(), "hunter") || strings.Contains(err.Error(), "ter2"):
			t.Errorf("Open(%q): %v holds the password", text, err)
		case !strings.Contains(err.Error(), want):
			t.Errorf("Open(%q): %v, want %q in it", text, err, want)
		}
	}
}
