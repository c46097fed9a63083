package oracle_test

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
	"github.com/observerd/observerd/test/kit/oratest/wire"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(m) }

const password = "p@ss/w:rd %#?&+"

// database is an emulated database with the eyes of its owner, APP.
type database struct {
	t      testing.TB
	server *oratest.Server
	engine *engine.Engine
	seen   *recorder
}

// emulate starts a database. Further accounts are named; all have one password.
func emulate(t testing.TB, o engine.Options, accounts ...string) *database {
	t.Helper()
	d := &database{t: t, engine: engine.New(o)}
	d.seen = &recorder{Handler: d.engine}
	users := map[string]string{"app": password}
	for _, name := range accounts {
		users[name] = password
	}
	d.server = oratest.Start(t, oratest.Options{Users: users, Handler: d.seen, Version: o.Version})
	return d
}

// url is where an account logs on to.
func (d *database) url(account string) string {
	u := url.URL{Scheme: "oracle", User: url.UserPassword(account, password), Host: d.server.Addr(), Path: "/ORCLPDB1"}
	return u.String()
}

func (d *database) open(o oracle.Options) *oracle.Source {
	d.t.Helper()
	if o.URL == "" {
		o.URL = d.url("app")
	}
	return open(d.t, o)
}

func open(t testing.TB, o oracle.Options) *oracle.Source {
	t.Helper()
	return sourcetest.Open(t, oracle.Open, o)
}

// exec runs statements of the owner, each committed.
func (d *database) exec(statements ...string) {
	d.t.Helper()
	for _, text := range statements {
		if err := d.engine.Exec(text); err != nil {
			d.t.Fatalf("%s: %v", text[:min(len(text), 200)], err)
		}
	}
}

var orderRow = regexp.MustCompile(`^INSERT INTO orders VALUES \((\d+), '([^']*)', TIMESTAMP '([^']*)'\)$`)

// load is exec for many orders, without the work of so many statements.
func (d *database) load(statements []string) bool {
	d.t.Helper()
	rows := make([][]any, len(statements))
	for i, text := range statements {
		fields := orderRow.FindStringSubmatch(text)
		if fields == nil {
			return false
		}
		id, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			d.t.Fatal(err)
		}
		at, err := time.Parse(time.DateTime, fields[3])
		if err != nil {
			d.t.Fatal(err)
		}
		rows[i] = []any{id, fields[2], at}
	}
	if err := d.engine.BulkInsert("ORDERS", slices.Values(rows)); err != nil {
		d.t.Fatal(err)
	}
	return true
}

// begin opens a transaction of the owner beside the others.
func (d *database) begin() (exec func(string), commit func()) {
	d.t.Helper()
	tx := d.engine.Begin()
	return func(text string) {
		d.t.Helper()
		if err := tx.Exec(text); err != nil {
			d.t.Fatalf("%s: %v", text, err)
		}
	}, tx.Commit
}

// explain returns the plan of a statement as text.
func (d *database) explain(text string) string {
	d.t.Helper()
	plan, err := d.engine.Plan(text)
	if err != nil {
		d.t.Fatalf("%s: %v", text, err)
	}
	return plan
}

// recorder keeps the statements of clients, with their binds.
type recorder struct {
	wire.Handler
	mu         sync.Mutex
	statements []string
	// answer, if set, may answer in the database's place.
	answer func(s wire.Statement) (handled bool, err error)
}

func (r *recorder) Execute(ctx context.Context, s wire.Statement) (wire.Result, error) {
	text := s.SQL
	for i, b := range s.Binds {
		text += fmt.Sprintf("\n-- :%d = %v", i+1, b)
	}
	r.mu.Lock()
	r.statements = append(r.statements, text)
	answer := r.answer
	r.mu.Unlock()
	if answer != nil {
		if handled, err := answer(s); handled {
			return wire.Result{}, err
		}
	}
	// The rows are fetched by later calls, which this one's end must not touch.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, stop)()
	return r.Handler.Execute(running, s)
}

// taken returns what was recorded since the last call.
func (r *recorder) taken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.statements
	r.statements = nil
	return taken
}

// instead lets a test answer some statements itself.
func (r *recorder) instead(answer func(s wire.Statement) (bool, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

var timeLiteral = regexp.MustCompile(`'(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)'`)

// dialect makes of a statement of the contract suite those that Oracle takes:
// its times are no text, and a VALUES has one row.
func dialect(text string) []string {
	if text == "ANALYZE" {
		return nil
	}
	text = timeLiteral.ReplaceAllString(text, "TIMESTAMP '$1'")
	head, tail, found := strings.Cut(text, "VALUES")
	if !found {
		return []string{text}
	}
	var all []string
	for _, row := range tuples(tail) {
		all = append(all, head+"VALUES "+row)
	}
	return all
}

// tuples cuts "(1, 'a'), (2, 'b')" at the commas between the parentheses.
func tuples(text string) []string {
	var all []string
	depth, start, quoted := 0, 0, false
	for i, c := range text {
		switch {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '(':
			if depth++; depth == 1 {
				start = i
			}
		case c == ')':
			if depth--; depth == 0 {
				all = append(all, text[start:i+1])
			}
		}
	}
	return all
}

func keysOf(rows []observer.Row) string {
	keys := make([]string, len(rows))
	for i, r := range rows {
		keys[i] = r.Key
	}
	return strings.Join(keys, " ")
}
