package mysql_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/mysql"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/mariatest"
)

// book is a gate that writes down what it was told.
type book struct {
	mu    sync.Mutex
	calls []string
	fault error
	shut  error
	// asked is called when a logon is let through; nil does nothing.
	asked func()
}

func (b *book) record(call string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, call)
}

func (b *book) Allow(context.Context) (func(error), error) {
	b.record("allow")
	if b.shut == nil && b.asked != nil {
		b.asked()
	}
	return b.ended, b.shut
}

func (b *book) ended(err error) {
	switch {
	case err == nil:
		b.record("accepted")
	case observer.ClassOf(err) == observer.ClassCredentials:
		b.record("refused")
		b.fault = err
	default:
		b.record("failed")
	}
}

func (b *book) said() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.calls, " ")
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	owner := connect(t, address)
	exec(t, owner, `CREATE TABLE orders (id int PRIMARY KEY, v text); INSERT INTO orders VALUES (1, 'confidential')`)
	stranger := mariatest.NewRole(t, address, "SELECT (id) ON orders")
	wrong, locked := with(t, stranger, "guessed", ""), mariatest.NewRole(t, address, "SELECT ON orders")
	exec(t, owner, "ALTER USER `"+user(t, locked)+"`@'%' ACCOUNT LOCK")
	few := mariatest.NewRole(t, address, "SELECT ON orders")
	exec(t, owner, "ALTER USER `"+user(t, few)+"`@'%' WITH MAX_USER_CONNECTIONS 1")
	mariatest.Connect(t, few, nil)
	table := observer.Query{Table: "orders", Key: []string{"id"}}
	query := func(sql string) observer.Query { return observer.Query{SQL: sql, Key: []string{"id"}} }
	for name, test := range map[string]struct {
		url   string
		query observer.Query
		class observer.Class
		code  string
		told  string // what came of the logon
	}{
		"wrong password":    {wrong, table, observer.ClassCredentials, "1045", "refused"},
		"locked":            {locked, table, observer.ClassCredentials, "4151", "refused"},
		"no room":           {few, table, observer.ClassResource, "1226", "failed"},
		"no such database":  {with(t, address, "", "nowhere"), table, observer.ClassSettings, "1049", "failed"},
		"no such address":   {"mysql://u@127.0.0.1:1/db", table, observer.ClassUnreachable, "", "failed"},
		"no such host":      {"mysql://u@no-such-host.invalid/db", table, observer.ClassUnreachable, "", "failed"},
		"no TLS over there": {address + "?tls=true", table, observer.ClassSettings, "", "failed"},
		"no right":          {stranger, query("SELECT v AS id FROM orders"), observer.ClassQuery, "1143", "accepted"},
		"syntax":            {address, query("SELEC 1"), observer.ClassQuery, "1064", "accepted"},
		"unknown column":    {address, query("SELECT nothing FROM orders"), observer.ClassQuery, "1054", "accepted"},
		"many rows in one":  {address, query("SELECT id, (SELECT v FROM orders UNION SELECT 2) AS v FROM orders"), observer.ClassData, "1242", "accepted"},
		"out of range":      {address, query("SELECT id, EXP(id + 1000) AS v FROM orders"), observer.ClassData, "1690", "accepted"},
	} {
		gate := &book{}
		s := open(t, mysql.Options{URL: test.url, Gate: gate})
		rows, err := sourcetest.TryRead(s, test.query, observer.Range{})
		if len(rows) > 0 {
			t.Errorf("%s: a row", name)
		}
		var f *observer.Fault
		if !errors.As(err, &f) || f.Class != test.class || f.Code != test.code {
			t.Errorf("%s: %v, %+v, want class %s, code %q", name, err, f, test.class, test.code)
			continue
		}
		for _, secret := range []string{"confidential", "guessed"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %v holds a secret", name, err)
			}
		}
		if gate.said() != "allow "+test.told || test.told == "refused" && observer.ClassOf(gate.fault) != observer.ClassCredentials {
			t.Errorf("%s: the gate was told %q, %v", name, gate.said(), gate.fault)
		}
	}
}

// MariaDB blocks an account after so many wrong passwords, also for the right one:
// the gate has to hear of that as well.
func TestBlockedAccount(t *testing.T) {
	t.Parallel()
	address := mariatest.Start(t, mariatest.Options{}).New(t)
	owner := connect(t, address)
	exec(t, owner, "CREATE TABLE orders (id int PRIMARY KEY)")
	account := mariatest.NewRole(t, address, "SELECT ON orders")
	exec(t, owner, "SET GLOBAL max_password_errors = 1")
	for _, test := range []struct{ url, code string }{
		{with(t, account, "guessed", ""), "1045"}, {account, "4150"},
	} {
		gate := &book{}
		_, err := open(t, mysql.Options{URL: test.url, Gate: gate}).Identity(t.Context())
		var f *observer.Fault
		if !errors.As(err, &f) || f.Class != observer.ClassCredentials || f.Code != test.code || gate.said() != "allow refused" {
			t.Errorf("%v, %+v, want code %s; the gate was told %q", err, f, test.code, gate.said())
		}
	}
}

// A node of a cluster that is not ready, and a server that was taken offline, are
// as good as down.
func TestServersThatAreNotReady(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	owner := connect(t, address)
	s := open(t, mysql.Options{URL: address})
	for _, number := range []string{"1047", "3032"} {
		exec(t, owner, "CREATE FUNCTION refuse"+number+"() RETURNS int BEGIN SIGNAL SQLSTATE '08S01' SET MYSQL_ERRNO = "+number+"; RETURN 1; END")
		_, err := sourcetest.TryRead(s, observer.Query{SQL: "SELECT refuse" + number + "() AS id", Key: []string{"id"}}, observer.Range{})
		if !errors.Is(err, observer.ErrUnreachable) {
			t.Errorf("%s: %v, class %q", number, err, observer.ClassOf(err))
		}
	}
}

func with(t *testing.T, address, password, database string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if password != "" {
		u.User = url.UserPassword(u.User.Username(), password)
	}
	if database != "" {
		u.Path = "/" + database
	}
	return u.String()
}

func user(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.User.Username()
}

// A gate that is shut is not knocked at.
func TestGate(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	gate := &book{shut: &observer.Fault{Class: observer.ClassCredentials, Code: "1045", Err: errors.New("refused an hour ago")}}
	s := open(t, mysql.Options{URL: address, Gate: gate})
	if _, err := s.Identity(t.Context()); observer.ClassOf(err) != observer.ClassCredentials || gate.said() != "allow" {
		t.Errorf("%v; the gate was told %q", err, gate.said())
	}
	gate.shut = nil
	identity, err := s.Identity(t.Context())
	if err != nil || identity != "" || gate.said() != "allow allow accepted" {
		t.Errorf("%q, %v; the gate was told %q", identity, err, gate.said())
	}
}

// A logon that is given up has ended as long as there is no socket; later, the
// server may have the password, and nobody knows what it makes of that.
func TestGateHearsOfTheEndOfLogonsThatAreGivenUp(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	ctx, giveUp := context.WithCancel(t.Context())
	gate := &book{asked: giveUp}
	_, err := open(t, mysql.Options{URL: address, Gate: gate}).Identity(ctx)
	if !errors.Is(err, context.Canceled) || gate.said() != "allow failed" {
		t.Errorf("before there is a socket: %v; the gate was told %q", err, gate.said())
	}

	ctx, giveUp = context.WithCancel(t.Context())
	gate = &book{}
	_, err = open(t, mysql.Options{URL: brooding(t, address, giveUp), Gate: gate}).Identity(ctx)
	if !errors.Is(err, context.Canceled) || gate.said() != "allow" {
		t.Errorf("while the server looks at the password: %v; the gate was told %q", err, gate.said())
	}
}

// brooding returns the URL of the database by way of one that greets a client as
// the server does, calls told once it has the password, and says no more.
func brooding(t *testing.T, address string, told func()) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	u.Host = listener.Addr().String()
	done := make(chan struct{})
	go func() {
		defer close(done)
		client, err := listener.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		up, err := net.Dial("tcp", server)
		if err != nil {
			t.Error(err)
			return
		}
		defer up.Close()
		packet := make([]byte, 1<<10)
		n, err := up.Read(packet)
		if err == nil {
			_, err = client.Write(packet[:n])
		}
		if err == nil {
			_, err = client.Read(packet)
		}
		if err != nil {
			t.Error(err)
		}
		told()
		_, _ = client.Read(packet) // until the client closes
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return u.String()
}
