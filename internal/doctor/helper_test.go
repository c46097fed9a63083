package doctor_test

import (
	"database/sql"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // The driver "pgx".

	"github.com/observerd/observerd/internal/doctor"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/examine"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) {
	servertest.SideBySide(10)
	waittest.VerifyNoLeaks(pgtest.Wrap(m))
}

// The scripts of Spring Integration, word for word.
const (
	springSix = `CREATE TABLE INT_LOCK  (
		LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), CREATED_DATE TIMESTAMP NOT NULL,
		constraint INT_LOCK_PK primary key (LOCK_KEY, REGION))`
	springSeven = `CREATE TABLE INT_LOCK  (
		LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), CREATED_DATE TIMESTAMP NOT NULL,
		EXPIRED_AFTER TIMESTAMP NOT NULL,
		constraint INT_LOCK_PK primary key (LOCK_KEY, REGION))`
)

// The lock of the tests, as a Java node names it, and the ids of two of them.
const (
	orderLock = "order-observer-poll"
	javaA     = "7d3f2c50-52cb-4a3e-9a5e-0f4b7a1c2d01"
	javaB     = "9e1b6a77-1c0f-4d5d-8a31-5b2f0c9d8e02"
)

var orderKey = lockdb.Key(lockdb.KeySpring, orderLock)

// subject is a database that is examined.
type subject struct {
	url  string
	db   *sql.DB
	want doctor.Expectation
}

// admit opens a database beside observerd, as a Java node or a person would,
// with a configuration that fits the Java nodes of the tests.
func admit(t *testing.T, url string) *subject {
	t.Helper()
	driver, dsn := "pgx", url
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, dsn = "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return &subject{url: url, db: db, want: doctor.Expectation{
		AutoMigrate: true, TTL: time.Minute, ConfigHash: "aaaaaaaaaaaa",
		Locks: []doctor.Lock{{
			Name: orderLock, Region: "DEFAULT", KeyFormat: lockdb.KeySpring, TTL: time.Minute,
			Type: "order", Interval: 30 * time.Second, Enabled: true,
		}},
	}}
}

// postgres is an empty database in which these statements were run.
func postgres(t *testing.T, statements ...string) *subject {
	t.Helper()
	p := admit(t, pgtest.New(t))
	p.exec(t, statements...)
	return p
}

// onBoth runs a test on a migrated database of each dialect.
func onBoth(t *testing.T, test func(t *testing.T, p *subject)) {
	t.Helper()
	for name, url := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "observerd.db") },
		"postgres": func(t *testing.T) string { return pgtest.New(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := admit(t, url(t))
			p.migrate(t)
			test(t, p)
		})
	}
}

func (p *subject) exec(t *testing.T, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := p.db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// observerd opens the database as a node of ours.
func (p *subject) observerd(t *testing.T) *lockdb.DB {
	t.Helper()
	db, err := lockdb.Open(lockdb.Options{URL: p.url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, _, err := db.SQL().SchemaVersion(t.Context()); err != nil { // It finds the tables.
		t.Fatal(err)
	}
	return db
}

func (p *subject) migrate(t *testing.T) {
	t.Helper()
	db := p.observerd(t)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// examine has a look at the database.
func (p *subject) examine(t *testing.T, watch time.Duration) []doctor.Finding {
	t.Helper()
	found, err := examine.Run(t.Context(), examine.Options{URL: p.url, Watch: watch, Every: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return doctor.Judge(found, p.want)
}

// says looks for a finding of a check that has all these parts.
func says(t *testing.T, all []doctor.Finding, check string, severity doctor.Severity, parts ...string) {
	t.Helper()
	for _, f := range all {
		text, whole := f.Saw+"\n"+f.Why+"\n"+f.Do, true
		for _, part := range parts {
			whole = whole && strings.Contains(text, part)
		}
		if f.Check == check && f.Severity == severity && whole {
			if severity != doctor.OK && severity != doctor.Note && (f.Why == "" || f.Do == "") {
				t.Errorf("%s does not say why, or what to do: %+v", check, f)
			}
			return
		}
	}
	t.Errorf("no %s of %s has %q among\n%s", severity, check, parts, printed(all))
}

// healthy complains of findings above a note, but for those of some checks.
func healthy(t *testing.T, all []doctor.Finding, but ...string) {
	t.Helper()
	for _, f := range all {
		excused := false
		for _, check := range but {
			excused = excused || f.Check == check
		}
		if !excused && f.Severity != doctor.OK && f.Severity != doctor.Note {
			t.Errorf("%s of %s: %s", f.Severity, f.Check, f.Saw)
		}
	}
}

func printed(all []doctor.Finding) string {
	var b strings.Builder
	for _, f := range all {
		b.WriteString(string(f.Severity) + " " + f.Check + ": " + f.Saw + " | " + f.Why + " | " + f.Do + "\n")
	}
	return b.String()
}
