package dburl_test

import (
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/wiring"
)

func TestURLsOfJDBC(t *testing.T) {
	t.Parallel()
	const mistake, parameters = "this is a URL of JDBC; use ", ", and its parameters as docs/configuration.md names them"
	for text, want := range map[string]string{
		"jdbc:oracle:thin:@//db1:1521/svc.example":                         "oracle://USER:PASSWORD@db1:1521/svc.example",
		"jdbc:oracle:thin:@db1:1521/SVC":                                   "oracle://USER:PASSWORD@db1:1521/SVC",
		"jdbc:oracle:thin:@db1:1521:XE":                                    "oracle://USER:PASSWORD@db1:1521/?sid=XE",
		"jdbc:oracle:thin:scott/hunter2@//db1/svc":                         "oracle://USER:PASSWORD@db1/svc",
		"jdbc:oracle:oci:scott/hunter2@db1:1521:XE":                        "oracle://USER:PASSWORD@db1:1521/?sid=XE",
		"jdbc:postgresql://db1:5432,db2/shop?user=a&password=hunter2":      "postgres://USER:PASSWORD@db1:5432,db2/shop" + parameters,
		"JDBC:PostgreSQL://[::1]:5432/shop":                                "postgres://USER:PASSWORD@[::1]:5432/shop",
		"jdbc:mysql://db1:3306/shop?user=a&password=hunter2":               "mysql://USER:PASSWORD@db1:3306/shop" + parameters,
		"jdbc:mariadb://db1/shop;password=hunter2":                         "mariadb://USER:PASSWORD@db1/shop" + parameters,
		"jdbc:sqlite:var/a.db":                                             "sqlite:var/a.db",
		"jdbc:sqlite:file:a.db?password=hunter2":                           "sqlite:PATH" + parameters,
		"jdbc:oracle:thin:@(DESCRIPTION=(ADDRESS=(HOST=db1)(PORT=hunter2)": "oracle://USER:PASSWORD@HOST:PORT/SERVICE",
		// Where a password may be anything, nothing is repeated.
		"jdbc:oracle:thin:scott/a@hunter2/b@//db1:1521/svc": "oracle://USER:PASSWORD@HOST:PORT/SERVICE",
		"jdbc:oracle:scott/hunter2":                         "oracle://USER:PASSWORD@HOST:PORT/SERVICE",
		"jdbc:oracle:thin:@scott/hunter2":                   "oracle://USER:PASSWORD@HOST:PORT/SERVICE",
		"jdbc:mysql://app:hunter2@db1/shop":                 "mysql://USER:PASSWORD@HOST:PORT/DATABASE",
		"jdbc:mysql://app:1/hunter2?@db1/shop":              "mysql://USER:PASSWORD@HOST:PORT/DATABASE" + parameters,
		"jdbc:mysql://(host=a,password=hunter2)/shop":       "mysql://USER:PASSWORD@HOST:PORT/DATABASE",
		"jdbc:postgresql:hunter2":                           "postgres://USER:PASSWORD@HOST:PORT/DATABASE",
	} {
		_, err := wiring.Kinds().Servers.ParseURL(text)
		if err == nil || err.Error() != mistake+want || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"jdbc:sqlserver://db1;password=hunter2": "this version does not support sqlserver yet; ",
		"jdbc:hunter2:x":                        "this is not the URL of a supported database; ",
	} {
		if _, err := wiring.Kinds().Servers.ParseURL(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"jdbc:postgresql://db1/observerd":  mistake + "postgres://USER:PASSWORD@db1/observerd",
		"jdbc:oracle:thin:@//db1:1521/svc": "oracle is read as a source only; the coordination database is PostgreSQL or SQLite: use sqlite:PATH or postgres://USER@HOST/DATABASE",
	} {
		if _, err := wiring.Kinds().Servers.ParseCoordination(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
