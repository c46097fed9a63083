package sqldb_test

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// TestSessionErrorsAreOneLine has servers that give no session, each for a reason of its
// own. The error has one line with the place, the reason and what to look at.
func TestSessionErrorsAreOneLine(t *testing.T) {
	t.Parallel()
	refusing := func(code, message string) string {
		return listen(t, func(c net.Conn) {
			for startup(c) == sslRequest {
				_, _ = c.Write([]byte("N"))
			}
			_, _ = c.Write(refusal(code, message))
		})
	}
	closed := listen(t, func(c net.Conn) { startup(c) })
	plain := listen(t, func(c net.Conn) { startup(c); _, _ = c.Write([]byte("N")) })
	nobody := "127.0.0.1:1"
	// As MariaDB does: what it says first may be taken for a message, of a type that comes later.
	foreign := func(greeting string) string {
		return listen(t, func(c net.Conn) { _, _ = c.Write([]byte(greeting)); startup(c) })
	}
	const other = ": the server does not answer as PostgreSQL does; are host and port right in database.url?"
	for name, c := range map[string]struct {
		address, options, want string
	}{
		"nobody listens": {nobody, "?sslmode=disable", "at 127.0.0.1:1: connection refused; does the server run"},
		"TLS is preferred": {
			nobody, "", "observerd at 127.0.0.1:1: connection refused; does the server run, and are host and port right in database.url?",
		},
		"two hosts": {
			nobody + ",127.0.0.1:2", "?sslmode=disable", "right in database.url?; nor at 127.0.0.1:2: connection refused",
		},
		"no such name":    {"unknown.invalid:5432", "?sslmode=disable", "observerd: the name unknown.invalid cannot be resolved"},
		"it is closed":    {closed, "?sslmode=disable", "at " + closed + ": the connection was closed; is it PostgreSQL that listens there?"},
		"no TLS":          {plain, "?sslmode=require", "at " + plain + ": the server has no TLS, and sslmode in database.url asks for it"},
		"a greeting":      {foreign("c\x00\x00\x00\x0a5.5.5-10.11.6-MariaDB\x00"), "?sslmode=disable", other},
		"a row":           {foreign("T\x00\x00\x00\x06\x00\x00"), "?sslmode=disable", other},
		"a password":      {refusing("28P01", "no \n such password"), "", ": no such password (SQLSTATE 28P01); correct the role or its password in database.url"},
		"a host":          {refusing("28000", "no entry"), "", ": no entry (SQLSTATE 28000); correct the role in database.url, or pg_hba.conf of the server"},
		"a database":      {refusing("3D000", "no database"), "", ": no database (SQLSTATE 3D000); make it, or correct its name in database.url"},
		"a server starts": {refusing("57P03", "it starts"), "?sslmode=disable", ": it starts (SQLSTATE 57P03)"},
		"its disk is full": {
			refusing("XX000", "could not write init file"), "?sslmode=disable", ": could not write init file (SQLSTATE XX000)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := sqldb.Open(sqldb.Options{
				URL: "postgres://app:hunter2@" + c.address + "/observerd" + c.options, Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			}()
			err = db.Ready(t.Context())
			if err == nil {
				t.Fatal("there is a session")
			}
			text := err.Error()
			if !strings.Contains(text, "no session as app on database observerd") || !strings.Contains(text, c.want) {
				t.Errorf("%s; want %q in it", text, c.want)
			}
			if strings.ContainsAny(text, "\n\t") || strings.Contains(text, "hunter2") || strings.Count(text, "127.0.0.1:1:") > 1 {
				t.Errorf("%q has several lines, the password, or a host twice", text)
			}
			if !sqldb.NoSession(err) {
				t.Errorf("%v is not known as an error of a connection", err)
			}
			if refused := strings.Contains(c.want, "correct "); (sqldb.Refusal(err) != "") != refused {
				t.Errorf("refusal %q", sqldb.Refusal(err))
			}
		})
	}
}

// listen answers each connection of a listener, and returns its address.
func listen(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(context.WithoutCancel(t.Context()), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			answer(c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	return listener.Addr().String()
}

// sslRequest is the code of a client that asks for TLS.
const sslRequest = 80877103

// startup reads a message of a client that begins, and returns its code.
func startup(c net.Conn) uint32 {
	var head [8]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return 0
	}
	_, _ = io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(head[:]))-int64(len(head)))
	return binary.BigEndian.Uint32(head[4:])
}

// refusal is a server's message of an error.
func refusal(code, message string) []byte {
	fields := "SFATAL\x00VFATAL\x00C" + code + "\x00M" + message + "\x00\x00"
	return append(binary.BigEndian.AppendUint32([]byte{'E'}, uint32(len(fields)+4)), fields...)
}
