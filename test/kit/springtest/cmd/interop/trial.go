package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // The driver of the witness.

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/springtest"
)

// trial is all that one generation goes through, in a database of its own.
type trial struct {
	settings   settings
	server     *pgtest.Server
	java       java
	generation springtest.Generation
	binary     string
	out        io.Writer

	url, jdbc string
	// store are the arguments of Java that say where the locks are, beside the table.
	store   []string
	version string
	witness witness
}

// locks are those of the contests, the last three those of daemons.
var locks = []string{
	"inbound", "outbound", "ünï→", "1-1-1-1-1", "acbd18db-4cc2-385c-adef-654fccc4a4d8",
	"order-observer-poll", "inventory-observer-poll", "wes-observer-poll",
}

func (t *trial) run(ctx context.Context) (err error) {
	if err := t.prepare(ctx); err != nil {
		return err
	}
	before, err := springtest.Catalogue(ctx, t.url)
	if err != nil {
		return err
	}
	db, err := t.node(ctx)
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	if err := t.openWitness(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.witness.db.Close()) }()
	errs := []error{t.compareKeys(ctx), t.otherTable(ctx)}
	errs = append(errs, t.rows(ctx, lockdb.KeySpring, false, t.settings.time), t.rows(ctx, lockdb.KeyPlain, false, t.settings.time/3),
		t.rows(ctx, lockdb.KeySpring, true, t.settings.time), t.daemons(ctx))
	after, err := springtest.Catalogue(ctx, t.url)
	if err == nil && after != before {
		err = fmt.Errorf("the catalogue says of INT_LOCK\n%s\nand before us\n%s", after, before)
	}
	if err == nil {
		fmt.Fprintf(t.out, "%s: INT_LOCK is in the catalogue as the library's script made it\n", t.name())
	}
	return errors.Join(append(errs, err)...)
}

// openWitness makes the witness, on connections of its own, which the caller closes.
func (t *trial) openWitness(ctx context.Context) error {
	beside, err := sql.Open("pgx", t.url)
	if err != nil {
		return err
	}
	beside.SetMaxOpenConns(12)
	if t.witness, err = makeWitness(ctx, beside, locks); err != nil {
		return errors.Join(err, beside.Close())
	}
	return nil
}

func (t *trial) name() string {
	if t.store != nil {
		return "spring-integration-redis " + t.version
	}
	return "spring-integration-jdbc " + t.version
}

// prepare makes the database, with the script that the library brings.
func (t *trial) prepare(ctx context.Context) error {
	if err := t.database(ctx, t.generation.String()); err != nil {
		return err
	}
	if err := t.java.run(ctx, &t.version, "version"); err != nil {
		return err
	}
	return t.java.run(ctx, nil, "schema", "url="+t.jdbc)
}

// database makes an empty database.
func (t *trial) database(ctx context.Context, name string) error {
	admin, err := sql.Open("pgx", t.server.URL("postgres"))
	if err != nil {
		return err
	}
	_, err = admin.ExecContext(ctx, `CREATE DATABASE `+name)
	if err := errors.Join(err, admin.Close()); err != nil {
		return fmt.Errorf("make a database: %w", err)
	}
	t.url = t.server.URL(name)
	t.jdbc, err = jdbc(t.url)
	return err
}

// node opens the database as one more node does.
func (t *trial) node(ctx context.Context) (*lockdb.DB, error) {
	db, err := lockdb.Open(lockdb.Options{URL: t.url, PoolSize: 2, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(db.Migrate(ctx), db.Ready(ctx)); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// compareKeys asks the library for the keys of names, and compares ours and
// those of the package springtest.
func (t *trial) compareKeys(ctx context.Context) error {
	names := append([]string{
		"", "0", "foo", "poll:orders", "a b", "a\tb", "ß", "日本語", "😀", "1-1-1-1-1", "g-1-1-1-1", "1-2-3-4", "-1-1-1-1-1",
		"ACBD18DB-4CC2-385C-ADEF-654FCCC4A4D8", "acbd18db-4cc2-385c-adef-654fccc4a4d", "acbd18db4cc2385cadef654fccc4a4d8",
		"00000000-0000-0000-0000-000000000000", "019a0000-0000-7000-8000-000000000000", "{acbd18db-4cc2-385c-adef-654fccc4a4d8}",
		"123456789-1-1-1-1", "1-fffff-1-1-1", strings.Repeat("x", 36), strings.Repeat("long", 50),
	}, locks...)
	var theirs []string
	if err := t.java.run(ctx, &theirs, append([]string{"keys"}, names...)...); err != nil {
		return err
	}
	if len(theirs) != len(names) {
		return fmt.Errorf("%d of %d names were hashed", len(theirs), len(names))
	}
	var errs []error
	differ := 0
	for i, name := range names {
		if got := t.generation.Key(name); got != theirs[i] {
			errs = append(errs, fmt.Errorf("springtest: the key of %q is %s, the library's %s", name, got, theirs[i]))
		}
		if got := lockdb.Key(lockdb.KeySpring, name); got != theirs[i] {
			differ++
			if t.generation != springtest.Spring5 {
				errs = append(errs, fmt.Errorf("our key of %q is %s, the library's %s", name, got, theirs[i]))
			}
		}
	}
	fmt.Fprintf(t.out, "%s: %d names hashed, %d of them otherwise than observerd does\n", t.name(), len(names), differ)
	return errors.Join(errs...)
}

// otherTable lets the library try a lock on the other generation's table, and
// compares what its application is told with what springtest says.
func (t *trial) otherTable(ctx context.Context) error {
	other, told := springtest.Spring7, "false" // The NOT NULL looks like a lock that another holds.
	switch t.generation {
	case springtest.Spring5:
		told = "CannotAcquireLockException"
	case springtest.Spring7:
		other, told = springtest.Spring6, "CannotAcquireLockException"
	}
	name := t.generation.String() + "_other"
	if _, err := t.witness.db.ExecContext(ctx, `CREATE DATABASE `+name); err != nil {
		return fmt.Errorf("make a database: %w", err)
	}
	url := t.server.URL(name)
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, other.Table())
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	where, err := jdbc(url)
	if err != nil {
		return err
	}
	var got string
	if err := t.java.run(ctx, &got, "try", "url="+where, "keys=hashed", "ttl=10000"); err != nil {
		return err
	}
	fmt.Fprintf(t.out, "%s on the table of %s: a free lock answers %s\n", t.name(), other, got)
	if got != told {
		return fmt.Errorf("on the table of %s the application is told %s, want %s", other, got, told)
	}
	return nil
}
