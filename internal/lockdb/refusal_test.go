package lockdb_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/observerd/observerd/internal/lockdb/examine"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestRefusal distinguishes a server that refuses sessions from one that is down, and
// from one that refuses a statement.
func TestRefusal(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	role := pgtest.NewRole(t, database)
	closed := pgtest.New(t)
	exec(t.Context(), t, closed, map[string]string{
		"postgres": `DO $$ BEGIN EXECUTE format('REVOKE CONNECT ON DATABASE %I FROM PUBLIC', current_database()); END $$`,
	})
	outside := pgtest.NewRole(t, closed)
	setting := func(name, value string) string { return changed(t, role, parameter(name, value)) }
	wrong := changed(t, role, func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "hunter2") })
	for name, tc := range map[string]struct{ url, want string }{
		"a wrong password":      {wrong, "password"},
		"and no TLS":            {changed(t, wrong, parameter("sslmode", "prefer")), "password"},
		"no such role":          {changed(t, role, func(u *url.URL) { u.User = url.UserPassword("nobody_at_all", "hunter2") }), "role"},
		"no such database":      {changed(t, role, func(u *url.URL) { u.Path = "/no_such_database" }), "no database of that name"},
		"no right to connect":   {outside, "does not let the role connect"},
		"no connections at all": {changed(t, role, func(u *url.URL) { u.Path = "/" + lockedUp(t, database) }), "lets no role connect to that database"},
		"no right to set":       {setting("log_statement", "all"), "does not let the role make a setting"},
		"no right to become":    {setting("role", "postgres"), "does not let the role make a setting"},
		"a wrong value":         {setting("statement_timeout", "hunter2"), "refuses a setting"},
		"no such setting":       {setting("no_such_setting", "hunter2"), "refuses a setting"},
		"no name of a setting":  {setting("a.-b", "hunter2"), "refuses a setting"},
		"a setting of servers":  {setting("fsync", "on"), "refuses a setting"},
		"no such option":        {setting("options", "--hunter2"), "refuses a setting"},
		"a server that is down": {changed(t, role, func(u *url.URL) { u.Host = "127.0.0.1:1" }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := open(t, tc.url).Ready(t.Context())
			got := sqldb.Refusal(err)
			if err == nil || (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("refusal %q, want %q, of %v", got, tc.want, err)
			}
			if sqldb.Unavailable(err) != (tc.want == "") {
				t.Errorf("unavailable %v: %v", sqldb.Unavailable(err), err)
			}
			if parsed, _ := url.Parse(tc.url); strings.Contains(got, "hunter2") || strings.Contains(err.Error(), secretOf(parsed)) {
				t.Errorf("it holds the password or a value: %s, %v", got, err)
			}
			if !sqldb.NoSession(err) {
				t.Errorf("there was a session: %v", err)
			}
		})
	}
	t.Run("a statement", func(t *testing.T) {
		t.Parallel()
		node := pgtest.New(t)
		if err := open(t, node).Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := open(t, pgtest.NewRole(t, node)).Ready(t.Context())
		if err == nil || sqldb.Refusal(err) != "" || sqldb.NoSession(err) {
			t.Errorf("refusal %q of %v", sqldb.Refusal(err), err)
		}
	})
}

// parameter changes one parameter of a URL.
func parameter(name, value string) func(*url.URL) {
	return func(u *url.URL) {
		parameters := u.Query()
		parameters.Set(name, value)
		u.RawQuery = parameters.Encode()
	}
}

func secretOf(u *url.URL) string {
	password, _ := u.User.Password()
	return password
}

// lockedUp is the name of a database beside this one that takes no connections.
func lockedUp(t *testing.T, beside string) string {
	t.Helper()
	name := strings.ToLower("closed_" + rand.Text())
	exec(t.Context(), t, beside, map[string]string{"postgres": `CREATE DATABASE ` + name + ` ALLOW_CONNECTIONS false`})
	t.Cleanup(func() {
		exec(context.WithoutCancel(t.Context()), t, beside, map[string]string{"postgres": `DROP DATABASE ` + name})
	})
	return name
}

func changed(t *testing.T, text string, change func(*url.URL)) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	change(u)
	return u.String()
}

// TestRefusalOfSeveralHosts has a URL with two hosts, some of which are silent:
// those may come back, and let the node in.
func TestRefusalOfSeveralHosts(t *testing.T) {
	t.Parallel()
	const down = "down"
	for name, tc := range map[string]struct {
		hosts   []string // the refusal of each
		refused bool
	}{
		"one that is down, one that refuses":  {[]string{down, "28P01"}, false},
		"one that refuses, one that is down":  {[]string{"28000", down}, false},
		"one that starts, one that refuses":   {[]string{"57P03", "28P01"}, false},
		"one that refuses, one that starts":   {[]string{"28000", "57P03"}, false},
		"both refuse":                         {[]string{"28000", "55000"}, true},
		"the second is not tried":             {[]string{"28P01", down}, true},
		"one, for a reason that has no words": {[]string{"P0001"}, true},
	} {
		for _, mode := range []string{"disable", "prefer"} {
			t.Run(name+" with sslmode="+mode, func(t *testing.T) {
				t.Parallel()
				var hosts []string
				for _, code := range tc.hosts {
					host := "127.0.0.1:1"
					if code != down {
						host = refusing(t, code)
					}
					hosts = append(hosts, host)
				}
				err := open(t, "postgres://observerd:hunter2@"+strings.Join(hosts, ",")+"/none?sslmode="+mode).Ready(t.Context())
				if got := sqldb.Refusal(err); err == nil || (got != "") != tc.refused || sqldb.Unavailable(err) == tc.refused {
					t.Errorf("refusal %q, unavailable %v, of %v", got, sqldb.Unavailable(err), err)
				}
			})
		}
	}
}

// TestRefusalOfOneAddress has a host of two addresses, one of them without a
// listener: it is the same server.
func TestRefusalOfOneAddress(t *testing.T) {
	t.Parallel()
	config, err := pgconn.ParseConfig("postgres://observerd:hunter2@" + refusing(t, "28000") + "/none?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	config.Host = "db.example.com"
	config.LookupFunc = func(context.Context, string) ([]string, error) {
		return []string{"127.0.0.2", "127.0.0.1", "127.0.0.3"}, nil
	}
	if _, err = pgconn.ConnectConfig(t.Context(), config); !strings.Contains(sqldb.Refusal(err), "password") {
		t.Errorf("refusal %q of %v", sqldb.Refusal(err), err)
	}
}

// refusing is the address of a server that ends every session with an SQLSTATE.
func refusing(t *testing.T, code string) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); work.Wait() })
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() { turnAway(conn, code) })
		}
	})
	return listener.Addr().String()
}

func turnAway(conn net.Conn, code string) {
	defer func() { _ = conn.Close() }()
	server := pgproto3.NewBackend(conn, conn)
	first, err := server.ReceiveStartupMessage()
	if _, tls := first.(*pgproto3.SSLRequest); tls && err == nil {
		_, _ = conn.Write([]byte("N"))
		return
	}
	if err == nil {
		server.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: code, Message: "nobody is let in"})
		_ = server.Flush()
	}
}

// TestFileOfSomethingElseIsNamedAndKept opens files that SQLite cannot read, and
// some of which it cannot read what every start needs.
func TestFileOfSomethingElseIsNamedAndKept(t *testing.T) {
	t.Parallel()
	for name, fill := range map[string]func(t *testing.T, path string){
		"another format":        holding(strings.Repeat("these are somebody's notes\n", 400)),
		"a short text":          holding("hello"),
		"a torn header":         holding("SQLite format 3\x00" + strings.Repeat("\xff", 8000)),
		"a torn list of tables": tearing("sqlite_schema"),
		"torn migrations":       tearing("obs_migration"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "notes.txt")
			fill(t, path)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			db := open(t, "sqlite:"+path)
			_, blind := examine.Run(t.Context(), examine.Options{URL: "sqlite:" + path})
			for what, err := range map[string]error{"ready": db.Ready(t.Context()), "migrate": db.Migrate(t.Context()), "examine": blind} {
				if !errors.Is(err, sqldb.ErrNoDatabase) || !strings.Contains(err.Error(), path+" is left as it is") || sqldb.Unavailable(err) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if kept, err := os.ReadFile(path); err != nil || !bytes.Equal(kept, before) {
				t.Errorf("the file holds %d bytes, had %d: %v", len(kept), len(before), err)
			}
		})
	}
}

func holding(text string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tearing makes a database of ours and overwrites the first page of a table, but
// for the header of the file.
func tearing(table string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		db := open(t, "sqlite:"+path)
		if err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		size, root := int64(count(t, "sqlite:"+path, `SELECT page_size FROM pragma_page_size`)), int64(1)
		if table != "sqlite_schema" {
			root = int64(count(t, "sqlite:"+path, `SELECT rootpage FROM sqlite_schema WHERE name = '`+table+`'`))
		}
		const header = 100
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.WriteAt(bytes.Repeat([]byte{0xff}, int(size)-header), (root-1)*size+header)
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
