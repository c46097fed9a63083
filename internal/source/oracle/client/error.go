package client

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/observerd/observerd/internal/observer"
)

// What a driver's failures are for [errors.Is], apart from refusals ([*Error])
// and from the end of the caller's context.
var (
	// ErrShort reports a result that ended without the database's word that it
	// was the whole.
	ErrShort = errors.New("the result ended short")
	// ErrProtocol is wrapped by failures of the driver to make sense of an
	// answer, panics among them.
	ErrProtocol = errors.New("the driver did not understand the database")
	// ErrType is wrapped by the failure to read a column of a type that the
	// driver does not know.
	ErrType = errors.New("a column has a type that the driver cannot read: convert it in the query, such as with TO_CHAR or JSON_SERIALIZE")
	// ErrLost is wrapped by failures of a connection over which a session was
	// open.
	ErrLost = errors.New("the connection was lost")
	// ErrConnect is wrapped by failures to open a session about which the
	// database said nothing itself.
	ErrConnect = errors.New("no session could be opened")
	// ErrHandshake is wrapped, next to ErrConnect, where a server accepted the
	// connection and ended it without a word.
	ErrHandshake = errors.New("the other side hung up before its first word: is it an Oracle listener, and does it expect TLS?")
)

// Error is a refusal by the database itself.
type Error struct {
	// Code is the number of the ORA- message, 1017 for ORA-01017.
	Code int
	// Cause is the number of the message that Code only encloses, as ORA-00604
	// does; 0 for none.
	Cause int
	// Text is the first line of the message, without values.
	Text string
	// Position is the offset of the fault in the statement, from 1; 0 for none.
	Position int
}

// wrappers are the codes that say no more than that another error happened
// within something: recursive SQL, PL/SQL, a trigger, a parallel server, a
// database link, a job.
var wrappers = map[int]bool{604: true, 2063: true, 4088: true, 6512: true, 12801: true, 39014: true}

// nested finds the codes in the lines of a message.
var nested = regexp.MustCompile(`\bORA-(\d{5})\b`)

// stack is the line that follows an error of PL/SQL, once for each call.
var stack = ora(6512)

// Refusal makes an Error of what the database said: the code, the whole message
// and the offset of the fault in the statement, from 1. The message is dropped
// where it may quote a value: only what is known to name no more than objects,
// limits and states of the server is kept, unless PL/SQL has raised it, which
// may have made it of values.
func Refusal(code int, message string, position int) *Error {
	e := &Error{Code: code, Position: max(position, 0)}
	if wrappers[code] {
		e.Cause = enclosed(message)
	}
	said := ""
	if quotable(code) && !strings.Contains(message, stack) {
		said = strings.ToValidUTF8(FirstLine(message), "?")
	}
	return e.saying(said)
}

// Bare is the refusal in words of our own: those of the database may come from a
// row once rows are read, whatever its code. A function raises most codes at will,
// and dynamic SQL takes its names from wherever it likes.
func (e *Error) Bare() *Error {
	bare := *e
	return bare.saying("")
}

// saying sets the text; empty stands for our own.
func (e *Error) saying(text string) *Error {
	e.Text = cmp.Or(text, ora(e.Code)+": "+wording(e.Code))
	if e.Cause != 0 {
		e.Text += "; " + ora(e.Cause)
	}
	return e
}

// enclosed returns the first code of a known class that is no wrapper, or the
// first that is no wrapper at all.
func enclosed(message string) (cause int) {
	for _, match := range nested.FindAllStringSubmatch(message, -1) {
		code, _ := strconv.Atoi(match[1])
		if wrappers[code] {
			continue
		}
		if classOfCode(code) != observer.ClassUnknown {
			return code
		}
		cause = cmp.Or(cause, code)
	}
	return cause
}

// FirstLine is that of a message that may hold several.
func FirstLine(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return strings.TrimSpace(line)
}

func ora(code int) string { return fmt.Sprintf("ORA-%05d", code) }

// quotable reports whether messages of a code are known to hold no value of a
// row or of the query.
func quotable(code int) bool {
	switch classOfCode(code) {
	case observer.ClassData, observer.ClassUnknown, observer.ClassDriver:
		return false
	}
	return true
}

// words are what codes mean, and wordings what classes do.
var words = map[int]string{
	20:   "the database has no free process",
	28:   "an administrator ended the session",
	904:  "a column or a function does not exist",
	932:  "types do not fit together",
	942:  "a table or view does not exist, or may not be read",
	1013: "the statement was cancelled",
	1017: "a logon was refused",
	1031: "a right is missing",
	1427: "a subquery returned more than one row",
	1476: "a division by zero",
	1555: "the snapshot is too old",
	1652: "the temporary tablespace is full",
	4031: "the shared pool is out of memory",
	4063: "a view or a function has errors",
	6550: "PL/SQL could not be compiled",
}

var wordings = map[observer.Class]string{
	observer.ClassUnreachable: "a session was lost, or a database is not open",
	observer.ClassResource:    "the database has no room for it",
	observer.ClassKilled:      "an administrator, or a limit, ended the session or the statement",
	observer.ClassCredentials: "a logon was refused",
	observer.ClassSettings:    "an address or the name of a database does not fit",
	observer.ClassQuery:       "a name, a type or a right does not fit",
	observer.ClassData:        "a value does not allow what the query asks for",
	observer.ClassRetry:       "the database could not continue the read",
	observer.ClassDriver:      "the database failed internally, or did not understand the driver",
}

func wording(code int) string {
	switch {
	case wrappers[code]:
		return "an error happened within the statement"
	case code >= 20000 && code <= 20999:
		return "PL/SQL raised an error of its own"
	}
	return cmp.Or(words[code], wordings[classOfCode(code)], "the database refused")
}

// Error implements error.
func (e *Error) Error() string {
	text := cmp.Or(e.Text, ora(e.Code))
	if e.Position > 0 {
		text += fmt.Sprintf(" (at position %d)", e.Position)
	}
	return text
}

// Class says what kind of failure the refusal is, by the code that it encloses
// where it does.
func (e *Error) Class() observer.Class { return classOfCode(e.root()) }

func (e *Error) root() int { return cmp.Or(e.Cause, e.Code) }

// Spoils reports whether the session may be of no more use after the refusal.
// Only refusals that are known to be about one statement leave it as it was.
func (e *Error) Spoils() bool {
	switch e.root() {
	case 1000, 1001, 1002: // Cursors that leaked, or that are gone.
		return true
	case 54, 60, 1652, 2049, 4021, 30006: // What the statement waited for, or had no room for.
		return false
	}
	switch e.Class() {
	case observer.ClassQuery, observer.ClassData, observer.ClassRetry:
		return false
	}
	return true
}
