package source_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(m) }

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"orders", "order_lines", "inventory", "wes_tasks", "ORDERS_OLD", "ts2", "id", "v"}
	for name, want := range map[string][]string{
		"ordres": {"orders"}, "Orders": {"orders"}, "order_line": {"order_lines", "orders", "ORDERS_OLD"},
		"inventroy": {"inventory"}, "ts": {"ts2"}, "xyz": nil, "zzzzzzzz": nil,
	} {
		if got := source.Nearest(name, names); !slices.Equal(got, want) {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestMissingError(t *testing.T) {
	t.Parallel()
	err := error(&source.MissingError{Kind: "column", Name: "oder", In: "public.orders", Nearest: []string{"order", "older"}})
	if got, want := err.Error(), `column "oder" does not exist in public.orders; is it "order" or "older"?`; got != want {
		t.Errorf("Error = %s, want %s", got, want)
	}
	err = &source.MissingError{Kind: "column", Name: "nr", In: "public.orders", PrimaryKey: []string{"site", "order_id"}}
	if got, want := err.Error(), `column "nr" does not exist in public.orders; the primary key is (site, order_id)`; got != want {
		t.Errorf("Error = %s, want %s", got, want)
	}
}

func TestEarliestWall(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ zone, at, want string }{
		{"UTC", "2024-10-27T00:30:00Z", "2024-10-27T00:30:00"},
		{"Europe/Berlin", "2024-07-01T00:00:00Z", "2024-07-01T02:00:00"},
		{"Europe/Berlin", "2024-10-26T23:59:59Z", "2024-10-27T01:59:59"},
		{"Europe/Berlin", "2024-10-27T00:30:00Z", "2024-10-27T02:00:00"}, // 02:30, the first time
		{"Europe/Berlin", "2024-10-27T01:30:00Z", "2024-10-27T02:30:00"}, // 02:30, the second time
		{"Europe/Berlin", "2024-03-31T00:59:59Z", "2024-03-31T01:59:59"}, // the clocks go forward
		{"Australia/Lord_Howe", "2024-04-06T14:45:00Z", "2024-04-07T01:30:00"},
		{"America/New_York", "2024-11-03T05:59:00Z", "2024-11-03T01:00:00"},
	} {
		loc, err := time.LoadLocation(test.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, test.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := source.EarliestWall(at, loc).Format("2006-01-02T15:04:05"); got != test.want {
			t.Errorf("EarliestWall(%s, %s) = %s, want %s", test.at, test.zone, got, test.want)
		}
	}
}

// No reading of a later moment may be below the earliest wall of an earlier one.
func TestEarliestWallIsABound(t *testing.T) {
	t.Parallel()
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2024, 10, 26, 20, 0, 0, 0, time.UTC)
	for i := range 60 {
		at := start.Add(time.Duration(i) * 10 * time.Minute)
		bound := source.EarliestWall(at, loc).Format(time.DateTime)
		for j := i; j < 60; j++ {
			later := start.Add(time.Duration(j) * 10 * time.Minute).In(loc).Format(time.DateTime)
			if later < bound {
				t.Fatalf("at %s the bound is %s, but %s follows", at, bound, later)
			}
		}
	}
}

func TestSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, s := source.WatchSilence(t.Context(), time.Minute)
		time.Sleep(time.Hour) // Nobody waits for the database.
		for range 100 {
			s.Wait()
			time.Sleep(50 * time.Second) // It answers just in time.
			s.Got()
		}
		if ctx.Err() != nil {
			t.Fatalf("ended while the database answered: %v", context.Cause(ctx))
		}
		s.Wait()
		time.Sleep(2 * time.Minute)
		if !errors.Is(context.Cause(ctx), source.ErrSilent) {
			t.Errorf("cause = %v after two minutes of silence", context.Cause(ctx))
		}
		s.Stop()
	})
}

func TestStopEndsTheWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, s := source.WatchSilence(t.Context(), time.Minute)
		s.Wait()
		s.Stop()
		s.Stop()
		if !errors.Is(context.Cause(ctx), context.Canceled) {
			t.Errorf("cause = %v", context.Cause(ctx))
		}
	})
}

func FuzzJSON(f *testing.F) {
	for _, text := range []string{`{"a" : [1, "x \" y: z\\"] }`, "null", ` "\\" `, "\t1"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) || !utf8.Valid(text) {
			return
		}
		var want bytes.Buffer
		if err := json.Compact(&want, text); err != nil {
			t.Fatal(err)
		}
		b, err := source.NewBuilder(observer.Query{}, source.Selection{})
		if err != nil {
			t.Fatal(err)
		}
		if b.JSON(0, text); !bytes.Equal(b.Data, want.Bytes()) {
			t.Fatalf("%s became %s, want %s", text, b.Data, want.Bytes())
		}
	})
}

// FuzzKey compares the builder's keys, written byte by byte, with JoinKey.
func FuzzKey(f *testing.F) {
	f.Add("a/b", "50%")
	f.Add("", "x")
	f.Add("a\x00", "é\xff")
	f.Fuzz(func(t *testing.T, a, b string) {
		q := observer.Query{Table: "t", Key: []string{"a", "b"}}
		s, err := source.Select(q, []source.Column{{Name: "a"}, {Name: "b"}}, "t")
		if err != nil {
			t.Fatal(err)
		}
		builder, err := source.NewBuilder(q, s)
		if err != nil {
			t.Fatal(err)
		}
		builder.Start(0)
		builder.KeyPart(0, []byte(a))
		builder.KeyPart(1, []byte(b))
		row := builder.Finish(nil, time.Time{})
		good := func(part string) bool {
			return part != "" && utf8.ValidString(part) && !strings.Contains(part, "\x00")
		}
		if good(a) && good(b) {
			if row.Err != nil || row.Key != observer.JoinKey([]string{a, b}) {
				t.Fatalf("%q, %q: key %q, %v", a, b, row.Key, row.Err)
			}
		} else if row.Err == nil || row.Key != "" {
			t.Fatalf("%q, %q: key %q without a fault", a, b, row.Key)
		}
	})
}
