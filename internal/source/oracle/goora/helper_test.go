package goora_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/oracle/client"
	"github.com/observerd/observerd/internal/source/oracle/goora"
	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/wire"
	"github.com/observerd/observerd/test/kit/waittest"
)

// identity is the certificate of servers in these tests, and trusted by the
// clients: they believe what the system does, and it is told in time.
var identity tls.Certificate

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "goora")
	if err != nil {
		panic(err)
	}
	if identity, err = certify(filepath.Join(dir, "ca.pem")); err != nil {
		panic(err)
	}
	waittest.VerifyNoLeaks(cleaner{m, dir})
}

type cleaner struct {
	*testing.M
	dir string
}

func (c cleaner) Run() int {
	defer func() { _ = os.RemoveAll(c.dir) }()
	return c.M.Run()
}

func certify(path string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "oratest"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	err = errors.Join(os.WriteFile(path, text, 0o600), os.Setenv("SSL_CERT_FILE", path))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

const (
	user     = "observer"
	password = "p@ss/w:rd %#?&+ü"
	// grace is short, so that tests of its end are.
	grace = 200 * time.Millisecond
	// soon is what a test waits for what should come at once.
	soon = 10 * time.Second
	// nobody is an address at which nobody listens, nor will: the system hands
	// out higher ports.
	nobody = "127.0.0.1:1"
)

// echo answers a query with its own text, so that a foreign answer shows, and
// "ROWS n" with n numbered rows.
type echo struct{}

var (
	counted = regexp.MustCompile(`ROWS (\d+)`)
	lobs    = regexp.MustCompile(`LOBS (\d+)`)
)

func (echo) Execute(_ context.Context, s wire.Statement) (wire.Result, error) {
	if !strings.HasPrefix(s.SQL, "SELECT") {
		return wire.Result{}, nil
	}
	if strings.Contains(s.SQL, "MISSING") {
		return wire.Result{}, &wire.Error{Code: 942, Position: 14}
	}
	if strings.Contains(s.SQL, "JSON") {
		return table(wire.TypeJSON, 1), nil
	}
	if match := lobs.FindStringSubmatch(s.SQL); match != nil {
		n, _ := strconv.Atoi(match[1])
		return table(wire.TypeCLOB, n), nil
	}
	if match := counted.FindStringSubmatch(s.SQL); match != nil {
		n, _ := strconv.Atoi(match[1])
		return table(wire.TypeVarchar, n), nil
	}
	return wire.Result{
		Columns: []wire.Column{{Name: "ECHO", Size: 4000}, {Name: "N", Type: wire.TypeNumber, Nullable: true}},
		Rows:    &list{[][]wire.Value{{s.SQL, "12345678901234567890123456789012345678"}}},
	}, nil
}

func (echo) Closed(*wire.Session) {}

func table(kind wire.Type, n int) wire.Result {
	all := make([][]wire.Value, n)
	for i := range all {
		all[i] = []wire.Value{strconv.Itoa(i), fmt.Sprintf("row %d", i)}
	}
	columns := []wire.Column{{Name: "ID", Type: wire.TypeNumber, Precision: 10}, {Name: "TEXT", Type: kind, Size: 100}}
	if kind == wire.TypeCLOB || kind == wire.TypeJSON {
		columns[1].Size = 0
	}
	return wire.Result{Columns: columns, Rows: &list{all}}
}

type list struct{ rows [][]wire.Value }

func (l *list) Next() ([]wire.Value, bool) {
	if len(l.rows) == 0 {
		return nil, false
	}
	row := l.rows[0]
	l.rows = l.rows[1:]
	return row, true
}

func (l *list) Close() {}

func start(t *testing.T) *oratest.Server {
	return oratest.Start(t, options())
}

func options() oratest.Options {
	return oratest.Options{Users: map[string]string{user: password}, Handler: echo{}, SIDs: []string{"XE"}}
}

func target(s *oratest.Server) client.Target {
	return client.Target{
		User: user, Password: password, Servers: []string{s.Addr()}, Service: "ORCLPDB1",
		FetchSize: 10, ConnectTimeout: soon, Grace: grace, Gate: source.Open{}, Era: new(source.Era),
	}
}

// open opens a pool that keeps at most one connection, so that the next query
// meets the connection of the last.
func open(t *testing.T, at client.Target) *sql.DB {
	t.Helper()
	connector, err := goora.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// asked is a pool, or one of its connections.
type asked interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// ask returns the answer of the echo to a query.
func ask(ctx context.Context, db asked, query string) (string, error) {
	var text, number string
	err := db.QueryRowContext(ctx, query).Scan(&text, &number)
	return text, err
}

// right fails unless the next query gets its own answer.
func right(t *testing.T, db *sql.DB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for i := range 3 {
		query := fmt.Sprintf("SELECT after %d", i)
		if got, err := ask(ctx, db, query); got != query || err != nil {
			t.Errorf("asked %q, got %q: %v", query, got, err)
		}
	}
}

// read reads a query's rows to the end and returns how many there were.
func read(ctx context.Context, db asked, query string) (n int, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }()
	for ; rows.Next(); n++ {
		var id int
		var text string
		if err := rows.Scan(&id, &text); err != nil {
			return n, err
		}
		if id != n || text != fmt.Sprintf("row %d", n) {
			return n, fmt.Errorf("row %d is %d %q", n, id, text)
		}
	}
	return n, rows.Err()
}

// executed counts how often a statement was executed.
func executed(s *oratest.Server, query string) (n int) {
	for _, r := range s.Statements() {
		if r.Executed && r.SQL == query {
			n++
		}
	}
	return n
}

// within returns a context and a check that no more than a time has passed.
func within(t *testing.T, limit time.Duration) (context.Context, func(most time.Duration)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx, stopwatch(t)
}

// upon is within for a deadline that passes when something happens, such as that
// a statement hangs: one of the clock may pass before the statement is sent.
func upon(t *testing.T, event <-chan struct{}) (context.Context, func(most time.Duration)) {
	t.Helper()
	return ending{t.Context(), event}, stopwatch(t)
}

// ending is a context whose deadline passes with an event.
type ending struct {
	context.Context
	event <-chan struct{}
}

func (e ending) Done() <-chan struct{} { return e.event }

func (e ending) Err() error {
	select {
	case <-e.event:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func stopwatch(t *testing.T) func(most time.Duration) {
	begun := time.Now()
	return func(most time.Duration) {
		t.Helper()
		if took := time.Since(begun); took > most {
			t.Errorf("it took %v", took)
		}
	}
}
