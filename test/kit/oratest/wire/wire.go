// Package wire holds what a statement and its result are on the wire: the seam
// between the protocol of the test server and whatever answers its statements.
package wire

import (
	"context"
	"fmt"
)

// Type is a type of a column, as the database describes it to a client.
type Type uint8

// The types that a column may have. TypeVarchar is the zero value.
const (
	TypeVarchar Type = iota
	TypeChar
	TypeNumber
	TypeDate
	TypeTimestamp
	TypeTimestampTZ
	TypeTimestampLTZ
	TypeRaw
	TypeCLOB
	TypeBinaryFloat
	TypeBinaryDouble
	TypeRowID
	// TypeJSON stands for a type that the driver cannot decode.
	TypeJSON
)

// Column describes a column of a result.
type Column struct {
	Name string
	Type Type
	// Size is in bytes; 0 lets the server choose the largest of the type.
	// Precision and Scale are those of a NUMBER, both 0 for a NUMBER without
	// any; Scale is also the digits of a TIMESTAMP's fraction.
	Size, Precision, Scale int
	Nullable               bool
}

// Value is what a column holds in a row, or a bind: nil for NULL, else a string
// (VARCHAR, CHAR, CLOB, and NUMBER as exact decimal text), []byte (RAW),
// time.Time (DATE and the TIMESTAMPs) or float64 (BINARY_FLOAT, BINARY_DOUBLE).
// A time without a zone is its wall clock, whatever its location.
type Value any

// Statement is a statement that a client asks to have executed.
type Statement struct {
	SQL string
	// Binds are in the order of the placeholders' occurrences.
	Binds   []Value
	Session *Session
}

// Session is a session of a client. Only the handler of its statements changes
// it, and a session runs one statement at a time.
type Session struct {
	User, Program string
	SerialNo      int
	// Settings are what ALTER SESSION has set, NLS_DATE_FORMAT and TIME_ZONE
	// for example, by their names in capitals.
	Settings map[string]string
	// Module, Action and ClientID are as DBMS_APPLICATION_INFO and
	// DBMS_SESSION have set them.
	Module, Action, ClientID string
	// Data is the handler's own state, an open transaction for example.
	Data any
}

// Result is what a statement gave.
type Result struct {
	// Columns describe the rows; none for a statement that is not a query.
	Columns []Column
	// Rows are the rows of a query, nil for other statements.
	Rows Rows
	// Affected counts the rows that a statement changed.
	Affected int
}

// Rows are the rows of a query, read as the client fetches them.
type Rows interface {
	// Next returns the next row with a value for each column, and false when
	// there is none. Rows that can fail on the way, with ORA-01555 for
	// example, have a method Err() error besides, asked after the last one.
	Next() ([]Value, bool)
	// Close frees the rows. The server calls it once, at the end of the rows,
	// of the cursor or of the session.
	Close()
}

// Error is a refusal of a statement, sent to the client as ORA-….
type Error struct {
	// Code is the number of the message, 942 for ORA-00942. Position is the
	// offset of the fault in the statement, 0 for none.
	Code, Position int
	// Text is the message without its number; empty for the server's own.
	Text string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("ORA-%05d: %s", e.Code, e.Text)
}

// Handler executes statements.
type Handler interface {
	// Execute runs a statement. Its context ends when the client breaks the
	// call or the connection is cut; the server then answers ORA-01013, or
	// nothing. An error that is not an [*Error] is sent as ORA-00600.
	//
	// The call by which a client rolls back comes as the statement ROLLBACK.
	Execute(ctx context.Context, s Statement) (Result, error)
	// Closed says that a session has ended, by a logoff or without one.
	Closed(s *Session)
}
