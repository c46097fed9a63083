package goora

import (
	"fmt"
	"reflect"
	"sync"

	go_ora "github.com/sijms/go-ora/v2"
	"github.com/sijms/go-ora/v2/network"

	"github.com/observerd/observerd/internal/source/oracle/client"
)

// The driver ends a result alike whether the database has said that there is
// no more (ORA-01403 at the end of an answer), or an answer merely held no
// rows; and it drops the code of an error after which it calls the connection
// bad. It knows both, in fields that it does not export. They are read here,
// and nowhere else: reading needs neither a statement more, which would change
// what the database does, nor the plain text of an encrypted connection. A
// version of the driver without these fields is refused before anything is
// opened, so that the answer is never guessed.

// shape says whether the driver has the fields that are read here.
var shape = sync.OnceValue(func() error {
	rows, result := reflect.TypeFor[go_ora.DataSet](), reflect.TypeFor[go_ora.ResultSet]()
	conn, session := reflect.TypeFor[go_ora.Connection](), reflect.TypeFor[network.Session]()
	summary, stmt := reflect.TypeFor[network.SummaryObject](), reflect.TypeFor[go_ora.Stmt]()
	base, _ := stmt.FieldByName("defaultStmt")
	for _, want := range []struct {
		in   reflect.Type
		name string
		kind reflect.Kind
	}{
		{rows, "resultSets", reflect.Slice}, {rows, "index", reflect.Int}, {result, "parent", reflect.Interface},
		{conn, "session", reflect.Pointer}, {session, "Summary", reflect.Pointer}, {session, "sendPcks", reflect.Slice},
		{summary, "RetCode", reflect.Int}, {summary, "ErrorMessage", reflect.Slice}, {base.Type, "_hasMoreRows", reflect.Bool},
	} {
		if want.in == nil {
			return fmt.Errorf("%w: this version of it is not known", client.ErrProtocol)
		}
		if f, ok := want.in.FieldByName(want.name); !ok || f.Type.Kind() != want.kind {
			return fmt.Errorf("%w: this version of it has no %s.%s", client.ErrProtocol, want.in, want.name)
		}
	}
	return nil
})

// whole reports whether the database has said that a result has no more rows. It
// panics where the driver is not as expected.
func whole(rows *go_ora.DataSet) bool {
	set := reflect.ValueOf(rows).Elem()
	results, index := set.FieldByName("resultSets"), int(set.FieldByName("index").Int())
	if index >= results.Len() {
		return false
	}
	parent := results.Index(index).FieldByName("parent")
	return !parent.IsNil() && !parent.Elem().Elem().FieldByName("_hasMoreRows").Bool()
}

func sessionOf(conn *go_ora.Connection) reflect.Value {
	return reflect.ValueOf(conn).Elem().FieldByName("session")
}

// interrupted reports whether the latest answer was broken off by the server: the
// driver's last packet was the one that acknowledges it. After that the driver
// takes a summary without an error for success, whatever rows got lost.
func interrupted(conn *go_ora.Connection) bool {
	session := sessionOf(conn)
	if session.IsNil() {
		return false
	}
	sent := session.Elem().FieldByName("sendPcks")
	return sent.Len() > 0 && sent.Index(sent.Len()-1).Elem().Type() == reflect.TypeFor[*network.MarkerPacket]()
}

// refusal returns the error with which the latest answer ended; nil for none.
func refusal(conn *go_ora.Connection) *client.Error {
	session := sessionOf(conn)
	if session.IsNil() {
		return nil
	}
	summary := session.Elem().FieldByName("Summary")
	if summary.IsNil() {
		return nil
	}
	code := int(summary.Elem().FieldByName("RetCode").Int())
	if code == 0 || code == noMoreRows {
		return nil
	}
	return client.Refusal(code, string(summary.Elem().FieldByName("ErrorMessage").Bytes()), 0)
}

// noMoreRows is ORA-01403.
const noMoreRows = 1403
