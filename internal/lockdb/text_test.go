package lockdb_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/examine"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
	"github.com/observerd/observerd/test/kit/bouncertest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestTextsOfAnySession has roles, databases and URLs that set against us what decides
// the text of a value: what is written then is found by sessions without them.
func TestTextsOfAnySession(t *testing.T) {
	t.Parallel()
	settings := map[string]string{
		"client_encoding": "LATIN1", "datestyle": "German", "timezone": "Asia/Tokyo", "intervalstyle": "sql_standard", "bytea_output": "escape",
		"extra_float_digits": "-5", "standard_conforming_strings": "off", "quote_all_identifiers": "on", "statement_timeout": "1s",
	}
	alter := func(t *testing.T, admin, what, name string) {
		for setting, value := range settings {
			exec(t.Context(), t, admin, map[string]string{"postgres": fmt.Sprintf(`ALTER %s "%s" SET %s = '%s'`, what, name, setting, value)})
		}
	}
	for way, against := range map[string]func(t *testing.T, admin, role string) string{
		"role": func(t *testing.T, admin, role string) string {
			alter(t, admin, "ROLE", configOf(t, role).User)
			return role
		},
		"database": func(t *testing.T, admin, role string) string {
			alter(t, admin, "DATABASE", configOf(t, role).Database)
			return role
		},
		"options": func(t *testing.T, _, role string) string {
			var options []string
			for setting, value := range settings {
				options = append(options, "-c "+setting+"="+value)
			}
			return changed(t, role, func(u *url.URL) {
				u.RawQuery += "&options=" + strings.ReplaceAll(url.QueryEscape(strings.Join(options, " ")), "+", "%20")
			})
		},
		"parameters": func(t *testing.T, _, role string) string {
			for setting, value := range settings {
				role = changed(t, role, parameter(strings.ToUpper(setting), value))
			}
			return role
		},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			admin := pgtest.New(t)
			role := pgtest.NewRole(t, admin, "CREATE ON SCHEMA public")
			address := against(t, admin, role)
			siege{}.work(t, address)
			db := open(t, address)
			g := acquire(t, db, "order-observer-poll")
			ch := chunk(cursorOf(t, db.Store(g), "umlaute"), 1)
			ch.New[0].Key, ch.Events[0].Subject, ch.Events[0].Data = "ü€", "ü€", []byte(`{"größe":"Ã¶"}`)
			mustCommit(t, db.Store(g), ch)
			for what, name := range map[string]string{"ROLE": configOf(t, role).User, "DATABASE": configOf(t, role).Database} {
				exec(t.Context(), t, admin, map[string]string{"postgres": fmt.Sprintf(`ALTER %s "%s" RESET ALL`, what, name)})
			}
			bare := open(t, role)
			if err := bare.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			store := bare.Store(g)
			known, err := store.Observed(t.Context(), cursorOf(t, store, "umlaute"), []string{"ü€"})
			if err != nil || known[0].Key != "ü€" {
				t.Errorf("a session without the settings knows %+v, %v", known, err)
			}
			if n := count(t, admin, `SELECT count(*) FROM obs_event WHERE subject = 'ü€' AND data::text = '{"größe":"Ã¶"}'`); n != 1 {
				t.Errorf("%d events", n)
			}
		})
	}
}

func configOf(t *testing.T, address string) *pgx.ConnConfig {
	t.Helper()
	config, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// TestEncodingOfTheDatabase has databases in which nodes work, some that lack characters,
// and a pooler that does not hand on which encoding its clients ask for.
func TestEncodingOfTheDatabase(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		url  func(t *testing.T) string
		says string
	}{
		"SQL_ASCII": {func(t *testing.T) string { return pgtest.NewIn(t, "SQL_ASCII") }, ""},
		"LATIN1":    {func(t *testing.T) string { return pgtest.NewIn(t, "LATIN1") }, "its encoding is LATIN1, which lacks"},
		"EUC_JP":    {func(t *testing.T) string { return pgtest.NewIn(t, "EUC_JP") }, "its encoding is EUC_JP, which lacks"},
		"a deaf pooler": {func(t *testing.T) string {
			return bouncertest.StandIn(t, changed(t, pgtest.New(t), parameter("client_encoding", "WIN1252")))
		}, "client_encoding is WIN1252 in a session that has asked for UTF8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := test.url(t)
			if test.says == "" {
				siege{}.work(t, address)
				return
			}
			db := open(t, address)
			_, err := db.Leases().Acquire(t.Context(), request("order"))
			_, examined := examine.Run(t.Context(), examine.Options{URL: address})
			for what, err := range map[string]error{"ready": db.Ready(t.Context()), "migrate": db.Migrate(t.Context()), "acquire": err, "examine": examined} {
				if !errors.Is(err, sqldb.ErrEncoding) || sqldb.Unavailable(err) || !strings.Contains(fmt.Sprint(err), test.says) {
					t.Errorf("%s: %v, want %s", what, err, test.says)
				}
			}
		})
	}
}

// TestReasonsOfAnyBytesAreNoted has a source that words its refusals in bytes
// which PostgreSQL does not store, as one does whose locale is not UTF-8. If
// they were not noted, every node would try again, without a pause.
func TestReasonsOfAnyBytesAreNoted(t *testing.T) {
	t.Parallel()
	const said, noted = "Kennwort f\xfcr \x00 falsch", "Kennwort f\ufffdr \ufffd falsch"
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		g, now := acquire(t, db, "order-observer-poll"), time.Now()
		err := db.Turns().NoteStream(t.Context(), g, turn.StreamTaken{
			Stream: "orders", Type: "order", At: now, Started: now, Finished: now, Outcome: turn.Error, Reason: said, Failures: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := db.Streams().LastError(t.Context(), "orders"); err != nil || got != noted {
			t.Errorf("noted %q, %v", got, err)
		}
		if polls, err := db.Polls(t.Context(), "", 1); err != nil || polls[0].Reason != noted {
			t.Errorf("history %+v, %v", polls, err)
		}
		if a := refuse(t, db, lockdb.Account{ID: "erp", Salt: []byte{1}, Digest: []byte{1}, Reason: said}); a.Reason != noted {
			t.Errorf("account %+v", a)
		}
	})
}

// TestActsOfAnyBytesAreNoted has an operator whose terminal is not set to UTF-8.
func TestActsOfAnyBytesAreNoted(t *testing.T) {
	t.Parallel()
	const actor, why, name, noted = "J\xfcrgen", "gepr\xfcft \x00", "J\ufffdrgen", "gepr\ufffdft \ufffd"
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		ctx, op, who := t.Context(), db.Operations(), lockdb.By{Actor: actor, Reason: why}
		if _, err := op.Pause(ctx, "orders", who, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := op.Resume(ctx, "orders", who, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Sweeps().Start(ctx, observer.Sweep{Stream: "orders", Kind: observer.SweepBackfill}, who); err != nil {
			t.Fatal(err)
		}
		if err := op.Note(ctx, lockdb.Did(who, "retry-dead", "orders", "")); err != nil {
			t.Fatal(err)
		}
		acts, err := op.Acts(ctx, lockdb.ActFilter{Actor: actor})
		if err != nil || len(acts) != 4 {
			t.Fatalf("%+v, %v", acts, err)
		}
		for _, act := range acts {
			if act.Actor != name || act.Action != "start-sweep" && act.Detail != noted {
				t.Errorf("noted %+q", act)
			}
		}
	})
}
