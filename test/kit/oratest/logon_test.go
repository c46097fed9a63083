package oratest_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"math/big"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	go_ora "github.com/sijms/go-ora/v2"

	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/wire"
)

func TestSession(t *testing.T) {
	s, h := start(t, oratest.Options{})
	var got wire.Session
	h.on("t", func(_ context.Context, st wire.Statement) (wire.Result, error) {
		got = *st.Session
		return wire.Result{Columns: idColumn}, nil
	})
	db := open(t, s, "PROGRAM", "observerd")
	mustAll(t, db, "SELECT id FROM t")
	if got.User != "OBSERVER" || got.Program != "observerd" || got.Settings["NLS_TERRITORY"] != "AMERICA" || got.Settings["TIME_ZONE"] == "" {
		t.Errorf("session %+v", got)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if fmt.Sprint(h.closed) != fmt.Sprint([]int{got.SerialNo}) {
		t.Errorf("closed %v, want session %d once", h.closed, got.SerialNo)
	}
}

func TestRefusals(t *testing.T) {
	s, _ := start(t, oratest.Options{SIDs: []string{"ORCL"}})
	wantCode(t, openAs(t, s, "nobody", password).Ping(), 1017)
	url := s.URL(user, password)
	other := sql.OpenDB(go_ora.NewConnector(strings.Replace(url, "ORCLPDB1", "OTHER", 1)))
	defer other.Close()
	wantCode(t, other.Ping(), 12514)
	if s.FailedLogons() != 1 {
		t.Errorf("%d failed logons, want only that of the unknown user", s.FailedLogons())
	}
	wantCode(t, open(t, s, "SID", "XE").Ping(), 12505)
	if err := open(t, s, "SID", "ORCL").Ping(); err != nil {
		t.Errorf("the known SID: %v", err)
	}
	s.Refuse(1, 12528)
	db := open(t, s)
	// A pool takes this code for a connection that is bad, and connects again.
	if err := db.Ping(); err != nil {
		wantCode(t, err, 12528)
	}
	s.Refuse(-1, 12519)
	for range 3 {
		wantCode(t, open(t, s).Ping(), 12519)
	}
	s.Refuse(0, 0)
	if err := open(t, s).Ping(); err != nil {
		t.Errorf("after the refusals: %v", err)
	}
}

func TestLongDescriptor(t *testing.T) {
	s, _ := start(t, oratest.Options{Service: strings.Repeat("s", 250)})
	if err := open(t, s).Ping(); err != nil {
		t.Error(err)
	}
}

func TestLockedAccount(t *testing.T) {
	s, _ := start(t, oratest.Options{MaxFailedLogons: 2})
	wantCode(t, openAs(t, s, user, "wrong").Ping(), 1017)
	if err := open(t, s).Ping(); err != nil {
		t.Fatalf("the right password after a wrong one: %v", err)
	}
	for range 2 {
		wantCode(t, openAs(t, s, user, "wrong").Ping(), 1017)
	}
	wantCode(t, open(t, s).Ping(), 28000)
	s.SetLocked(user, false)
	if err := open(t, s).Ping(); err != nil {
		t.Errorf("after the unlocking: %v", err)
	}
	s.SetPassword(user, "changed")
	wantCode(t, open(t, s).Ping(), 1017)
	s.OnCall(oratest.Logon, oratest.Fail(28001))
	wantCode(t, openAs(t, s, user, "changed").Ping(), 28001)
}

func TestVersions(t *testing.T) {
	for _, version := range []int{11, 12, 19, 23} {
		s, _ := start(t, oratest.Options{Version: version})
		conn, err := go_ora.NewConnection(s.URL(user, password, "SERVER LOCATION", "UTC"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Open(); err != nil {
			t.Fatal(err)
		}
		number, err := strconv.Atoi(conn.SessionProperties["AUTH_VERSION_NO"])
		if err != nil || number>>24 != version {
			t.Errorf("version %d shows as %x, %v", version, number, err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestDirectErrors(t *testing.T) {
	s, _ := start(t, oratest.Options{DirectErrors: true})
	wantCode(t, openAs(t, s, user, "wrong").Ping(), 1017)
	db := open(t, s)
	for range 2 {
		_, err := all(t, db, "SELECT 1 FROM nowhere")
		wantCode(t, err, 942)
	}
	if s.Logons() != 1 {
		t.Errorf("%d logons: an error has cost the connection", s.Logons())
	}
}

func TestServerTimeZoneIsAStatement(t *testing.T) {
	s, h := start(t, oratest.Options{})
	h.rows("SYSTIMESTAMP", []wire.Column{{Name: "SYSTIMESTAMP", Type: wire.TypeTimestampTZ}},
		[]wire.Value{time.Now().In(time.FixedZone("", 7200))})
	db := sql.OpenDB(go_ora.NewConnector(s.URL(user, password)))
	defer db.Close()
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
	if seen := s.Statements(); len(seen) != 1 || !strings.Contains(seen[0].SQL, "SYSTIMESTAMP") {
		t.Errorf("statements %v", seen)
	}
}

func TestManyConnections(t *testing.T) {
	s, h := start(t, oratest.Options{})
	h.on("t", func(_ context.Context, st wire.Statement) (wire.Result, error) {
		return wire.Result{Columns: idColumn, Rows: &list{rows: [][]wire.Value{{st.Binds[0]}, {st.Binds[0]}, {st.Binds[0]}}}}, nil
	})
	db := open(t, s, "PREFETCH_ROWS", "2")
	db.SetMaxOpenConns(8)
	var work sync.WaitGroup
	for worker := range 8 {
		work.Go(func() {
			for i := range 10 {
				n := fmt.Sprint(worker*100 + i)
				got, err := all(t, db, "SELECT :1 FROM t", n)
				if err != nil || len(got) != 3 || got[2][0] != n {
					t.Errorf("asked for %s, got %v, %v", n, got, err)
				}
			}
		})
	}
	work.Wait()
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if n := len(s.Statements()); n != 80 {
		t.Errorf("%d statements, want 80", n)
	}
}

func TestTLS(t *testing.T) {
	server, client := certificate(t)
	s, h := start(t, oratest.Options{TLS: server})
	h.rows("t", idColumn, ids(300)...)
	connector := go_ora.NewConnector(s.URL(user, password, "SERVER LOCATION", "UTC", "SSL", "true")).(*go_ora.OracleConnector)
	connector.WithTLSConfig(client)
	db := sql.OpenDB(connector)
	defer db.Close()
	if got := mustAll(t, db, "SELECT id FROM t"); len(got) != 300 {
		t.Errorf("%d rows, want 300", len(got))
	}
	stranger := sql.OpenDB(go_ora.NewConnector(s.URL(user, password, "SSL", "true", "SSL VERIFY", "true")))
	defer stranger.Close()
	if err := stranger.Ping(); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("error %v, want that of an unknown certificate", err)
	}
}

// certificate returns what a server of 127.0.0.1 shows, and who trusts it.
func certificate(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{RootCAs: roots}
}
