package mysql_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/mysql"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/mariatest"
)

// garbler stands between a source and its server and changes what the server
// says, as long as it is told to.
type garbler struct {
	old, new []byte
	on       atomic.Bool
	// deaf swallows whatever the server says after that.
	deaf bool
}

// start returns the database's URL by way of the garbler.
func (g *garbler) start(t *testing.T, address string) string {
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
	var open sync.WaitGroup
	open.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() { g.relay(client, server) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		open.Wait()
	})
	u.Host = listener.Addr().String()
	return u.String()
}

func (g *garbler) relay(client net.Conn, server string) {
	defer client.Close()
	up, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	var there sync.WaitGroup
	there.Go(func() {
		_, _ = io.Copy(up, client)
		_ = up.Close()
	})
	silent := false
	_, _ = io.Copy(writer(func(said []byte) (int, error) {
		heard := len(said)
		at := bytes.Index(said, g.old)
		switch {
		case silent:
			return heard, nil
		case at >= 0 && g.on.Load() && g.deaf:
			silent = true
			said = slices.Concat(said[:at], g.new)
		case g.on.Load():
			said = bytes.ReplaceAll(said, g.old, g.new)
		}
		_, err := client.Write(said)
		return heard, err
	}), up)
	_ = client.Close()
	there.Wait()
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// What no server says makes the driver panic, or end a result: that is a failure
// like others, and costs the connection.
func TestGarbledAnswersAreErrors(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	owner := connect(t, address)
	exec(t, owner, `CREATE TABLE orders (id int PRIMARY KEY, v varchar(20)); INSERT INTO orders VALUES (1, 'hello')`)
	query := observer.Query{Table: "orders", Key: []string{"id"}}
	for name, garbler := range map[string]*garbler{
		// The length of a value has eight bytes, of which there are fewer.
		"a row":     {old: []byte("\x05hello"), new: []byte("\xfehello")},
		"catalogue": {old: []byte("\x06InnoDB"), new: []byte("\xfeInnoDB")},
		// The value is longer than the row, which the driver says as if it were
		// the end of the result.
		"short row":       {old: []byte("\x05hello"), new: []byte("\xfahello")},
		"short catalogue": {old: []byte("\x06InnoDB"), new: []byte("\xfaInnoDB")},
	} {
		s := open(t, mysql.Options{URL: garbler.start(t, address)})
		if rows := sourcetest.ReadAll(t, s, query, observer.Range{}); len(rows) != 1 {
			t.Fatalf("%d rows", len(rows))
		}
		garbler.on.Store(true)
		rows, err := s.Read(t.Context(), query, observer.Range{})
		if err == nil {
			for rows.Next() {
				t.Errorf("%s: a row", name)
			}
			err = rows.Err()
			_ = rows.Close()
		}
		if observer.ClassOf(err) != observer.ClassDriver {
			t.Errorf("%s: %v, class %q", name, err, observer.ClassOf(err))
		}
		garbler.on.Store(false)
		if rows := sourcetest.ReadAll(t, s, query, observer.Range{}); len(rows) != 1 {
			t.Errorf("%s: %d rows afterwards", name, len(rows))
		}
	}
}

// A server that falls silent in the middle of a result is not waited for, also
// where nobody wants the rest of that.
func TestSilenceBehindWhatNobodyWants(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	owner := connect(t, address)
	exec(t, owner, `CREATE TABLE orders (id int PRIMARY KEY, v varchar(20)); INSERT INTO orders VALUES (1, 'hello')`)
	var version string
	if err := owner.QueryRowContext(t.Context(), "SELECT VERSION()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	for name, garbler := range map[string]*garbler{
		"of the catalogue": {old: []byte("\x06InnoDB"), new: []byte("\xfaInnoDB"), deaf: true},
		// A new connection learns who it is from one row; the packet behind it,
		// of seven bytes, ends the result.
		"of the set-up": {old: []byte(version + "\x07\x00\x00"), new: []byte(version), deaf: true},
	} {
		garbler.on.Store(true)
		s := open(t, mysql.Options{URL: garbler.start(t, address), QueryTimeout: time.Second})
		failed := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := s.Read(ctx, observer.Query{Table: "orders", Key: []string{"id"}}, observer.Range{})
			failed <- err
		}()
		select {
		case err := <-failed:
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: it is waited for without end", name)
		}
	}
}
