package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/oracle/client"
)

func TestClassesOfCodes(t *testing.T) {
	for class, codes := range map[observer.Class][]int{
		observer.ClassKilled:      {28, 31, 1013, 2393, 2395, 40, 7455},
		observer.ClassUnreachable: {1012, 1033, 1034, 1089, 2396, 2399, 3113, 3114, 3135, 12528, 12537, 12541, 12564, 25401, 25409},
		observer.ClassResource:    {18, 20, 54, 60, 1000, 1652, 2391, 4031, 12516, 12519, 12520},
		observer.ClassSettings:    {12154, 12505, 12506, 12514, 28040, 29024},
		observer.ClassCredentials: {1005, 1017, 1045, 28000, 28001, 28009},
		observer.ClassQuery:       {900, 904, 911, 933, 942, 979, 1031, 1789, 2019, 6550, 16000, 41900},
		observer.ClassData:        {1427, 1476, 1722, 1843, 1858, 1861, 6502, 12899},
		observer.ClassRetry:       {1555, 1410, 1466, 4068, 8103, 8181, 22924},
		observer.ClassDriver:      {600, 3106, 3120, 3137, 7445},
		observer.ClassUnknown:     {1, 20001, 29999, 899, 1000000},
	} {
		for _, code := range codes {
			err := client.Refusal(code, fmt.Sprintf("ORA-%05d: what happened\nORA-06512: at line 1\n", code), 0)
			fault := client.Classify(fmt.Errorf("read: %w", err))
			if fault.Class != class || fault.Code != fmt.Sprintf("ORA-%05d", code) || !errors.Is(fault, err) {
				t.Errorf("ORA-%05d is %s %s, want %s", code, fault.Class, fault.Code, class)
			}
		}
	}
}

func TestNestedCodes(t *testing.T) {
	for _, c := range []struct {
		code    int
		message string
		class   observer.Class
		found   string
	}{
		{604, "ORA-00604: error occurred at recursive SQL level 1\nORA-01555: snapshot too old\n", observer.ClassRetry, "ORA-01555"},
		{12801, "ORA-12801: error signaled in parallel query server P001\nORA-01722: invalid number\n", observer.ClassData, "ORA-01722"},
		{604, "ORA-00604: x\nORA-06512: at line 3\nORA-12801: y\nORA-00942: table or view does not exist", observer.ClassQuery, "ORA-00942"},
		{604, "ORA-00604: x\nORA-20001: secret\nORA-06512: at \"A.B\", line 3\nORA-00018: no room", observer.ClassResource, "ORA-00018"},
		{604, "ORA-00604: x\nORA-20001: secret\nORA-06512: at line 3", observer.ClassUnknown, "ORA-20001"},
		{604, "ORA-00604: error occurred at recursive SQL level 1\n", observer.ClassUnknown, "ORA-00604"},
		{942, "ORA-00942: table or view does not exist\nORA-02063: preceding line from LINK\n", observer.ClassQuery, "ORA-00942"},
	} {
		fault := client.Classify(client.Refusal(c.code, c.message, 0))
		if fault.Class != c.class || fault.Code != c.found || strings.Contains(fault.Error(), "secret") {
			t.Errorf("%q is %s %s (%v), want %s %s", c.message, fault.Class, fault.Code, fault, c.class, c.found)
		}
	}
}

func TestRefusalText(t *testing.T) {
	for _, c := range []struct {
		code     int
		message  string
		position int
		want     string
	}{
		{942, "ORA-00942: table or view does not exist\n more\n", 15, "ORA-00942: table or view does not exist (at position 15)"},
		{942, "ORA-00942: table or view does not exist\n", -1, "ORA-00942: table or view does not exist"},
		{1722, "ORA-01722: unable to convert string value containing 'x' to a number: QTY\n", 8, "ORA-01722: a value does not allow what the query asks for (at position 8)"},
		{20001, "ORA-20001: customer Smith is blocked\n", 0, "ORA-20001: PL/SQL raised an error of its own"},
		{942, "ORA-00942: table or view \"APP\".\"SMITH\" does not exist\nORA-06512: at \"APP.LEAK\", line 3\n", 15, "ORA-00942: a table or view does not exist, or may not be read (at position 15)"},
		{29999, "ORA-29999: Smith\n", 0, "ORA-29999: the database refused"},
		{3137, "ORA-03137: malformed TTC packet from client rejected: [12333] [Smith]\n", 0, "ORA-03137: the database failed internally, or did not understand the driver"},
		{604, "ORA-00604: error 'Smith'\nORA-20001: Smith\n", 0, "ORA-00604: an error happened within the statement; ORA-20001"},
		{12514, "", 0, "ORA-12514: an address or the name of a database does not fit"},
	} {
		if got := client.Refusal(c.code, c.message, c.position).Error(); got != c.want {
			t.Errorf("%q became %q, want %q", c.message, got, c.want)
		}
	}
	if text := (&client.Error{Code: 28}).Error(); text != "ORA-00028" {
		t.Error(text)
	}
}

func TestClassesOfOtherFailures(t *testing.T) {
	connect := func(err error) error { return fmt.Errorf("%w: %w", client.ErrConnect, err) }
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		err  error
		want observer.Class
	}{
		{connect(refused), observer.ClassUnreachable},
		{connect(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH}), observer.ClassUnreachable},
		{connect(&net.DNSError{Name: "db", IsNotFound: true}), observer.ClassSettings},
		{connect(&net.DNSError{Name: "db", IsTemporary: true}), observer.ClassUnreachable},
		{connect(context.DeadlineExceeded), observer.ClassUnreachable},
		{connect(io.EOF), observer.ClassUnreachable},
		{connect(fmt.Errorf("%w: %w", client.ErrHandshake, io.EOF)), observer.ClassSettings},
		{connect(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), observer.ClassSettings},
		{connect(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "db"}), observer.ClassSettings},
		{connect(tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}), observer.ClassSettings},
		{connect(tls.AlertError(42)), observer.ClassSettings},
		{connect(errors.New("unsupported verifier type")), observer.ClassSettings},
		{connect(client.ErrProtocol), observer.ClassDriver},
		{context.DeadlineExceeded, observer.ClassTimeout},
		{fmt.Errorf("%w: %w", context.Canceled, source.ErrSilent), observer.ClassTimeout},
		{context.Canceled, observer.ClassUnknown},
		{fmt.Errorf("%w: %w", client.ErrLost, io.EOF), observer.ClassUnreachable},
		{client.ErrLost, observer.ClassUnreachable},
		{driver.ErrBadConn, observer.ClassUnreachable},
		{io.ErrUnexpectedEOF, observer.ClassUnreachable},
		{&net.OpError{Op: "read", Net: "tcp", Err: syscall.ETIMEDOUT}, observer.ClassUnreachable},
		{client.ErrShort, observer.ClassDriver},
		{client.ErrProtocol, observer.ClassDriver},
		{client.ErrType, observer.ClassQuery},
		{errors.New("sql: expected 3 destination arguments"), observer.ClassUnknown},
		{&observer.Fault{Class: observer.ClassCredentials, Err: errors.New("held back")}, observer.ClassCredentials},
	} {
		fault := client.Classify(c.err)
		if fault.Class != c.want || !errors.Is(fault, c.err) {
			t.Errorf("%v is %s, want %s", c.err, fault.Class, c.want)
		}
		if reachable := c.want != observer.ClassUnreachable; errors.Is(fault, observer.ErrUnreachable) == reachable {
			t.Errorf("%v: unreachable is %v", c.err, !reachable)
		}
	}
	if client.Classify(nil) != nil {
		t.Error("no error became a fault")
	}
}

func TestSpoils(t *testing.T) {
	for code, want := range map[int]bool{
		942: false, 904: false, 933: false, 1722: false, 1555: false, 54: false, 30006: false, 6550: false,
		28: true, 1000: true, 1001: true, 1012: true, 1013: true, 2396: true, 2399: true, 3106: true, 3113: true, 3120: true,
		3135: true, 3137: true, 3146: true, 600: true, 7445: true, 1092: true, 1041: true, 12570: true, 25408: true, 20001: true, 99999: true,
	} {
		if got := client.Refusal(code, "", 0).Spoils(); got != want {
			t.Errorf("ORA-%05d spoils the session: %v", code, got)
		}
	}
	if !client.Refusal(604, "ORA-00604: x\nORA-03113: end-of-file\n", 0).Spoils() {
		t.Error("a session survives the loss that another code encloses")
	}
}
