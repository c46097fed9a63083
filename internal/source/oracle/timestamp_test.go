package oracle

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/source"
)

func berlin(t *testing.T) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func TestCursors(t *testing.T) {
	t.Parallel()
	loc := berlin(t)
	for _, test := range []struct {
		kind              timeKind
		text, cursor, utc string
	}{
		{timeDate, " 2024-07-01 10:00:00", "2024-07-01 10:00:00", "2024-07-01T08:00:00Z"},
		{timeDate, "2024-07-01 10:00:00", "2024-07-01 10:00:00", "2024-07-01T08:00:00Z"},
		{timeWall, " 2024-07-01 10:00:00.000000001", "2024-07-01 10:00:00.000000001", "2024-07-01T08:00:00.000000001Z"},
		{timeLTZ, " 2024-07-01 10:00:00.500000000", "2024-07-01 10:00:00.500000000Z", "2024-07-01T10:00:00.5Z"},
		{timeUTC, " 2024-07-01 10:00:00.500000000 +02:00", "2024-07-01 08:00:00.500000000Z", "2024-07-01T08:00:00.5Z"},
		{timeUTC, " 2024-12-31 23:00:00.000000000 -05:30", "2025-01-01 04:30:00.000000000Z", "2025-01-01T04:30:00Z"},
		{timeUTC, " 0001-01-01 00:00:00.000000000 +00:00", "0001-01-01 00:00:00.000000000Z", "0001-01-01T00:00:00Z"},
		{timeDate, "-0044-03-15 00:00:00", "", ""},
		{timeDate, " 0000-03-15 00:00:00", "", ""},
		{timeDate, " 2024-07-01", "", ""},
		{timeDate, " 2024-07-01 10:00:00.5", "", ""},
		{timeWall, " 2024-07-01 10:00:00", "", ""},
		{timeUTC, " 2024-07-01 10:00:00.500000000", "", ""},
		{timeUTC, " 2024-07-01 10:00:00.500000000 Europe", "", ""},
		{timeUTC, " 0001-01-01 00:00:00.000000000 +02:00", "", ""},
		{timeUTC, " 9999-12-31 23:00:00.000000000 -02:00", "", ""},
		{timeWall, "", "", ""},
	} {
		cursor, at, ok := test.kind.appendCursor(nil, []byte(test.text), loc)
		if ok != (test.cursor != "") || ok && (string(cursor) != test.cursor || at.UTC().Format(time.RFC3339Nano) != test.utc) {
			t.Errorf("%q: cursor %q at %s, %t, want %q at %s", test.text, cursor, at.UTC(), ok, test.cursor, test.utc)
		}
		if !ok {
			continue
		}
		zone := loc
		if test.kind.UTC {
			zone = time.UTC
		}
		again, err := time.ParseInLocation(test.kind.Layout, string(cursor), zone)
		if has := test.kind.Has(string(cursor)); err != nil || !has || !again.Equal(at) {
			t.Errorf("%q: the cursor %q is read as %s, %t, want %s", test.text, cursor, again, has, at)
		}
		if ahead := test.kind.Horizon(at, loc); ahead != test.cursor {
			t.Errorf("%q: the horizon at %s is %q", test.text, at, ahead)
		}
	}
}

// A cursor that was written for a column of another type is refused.
func TestCursorsOfOtherKinds(t *testing.T) {
	t.Parallel()
	cursors := map[timeKind]string{
		timeDate: "2024-07-01 10:00:00", timeWall: "2024-07-01 10:00:00.500000000", timeUTC: "2024-07-01 10:00:00.500000000Z",
	}
	for k := range cursors {
		for other, cursor := range cursors {
			if has := k.Has(cursor); has != (k == other) {
				t.Errorf("layout %q has %q: %t", k.Layout, cursor, has)
			}
		}
		for _, cursor := range []string{"", "yesterday", "2024-13-01 10:00:00", "0000-01-01 00:00:00", "2024-07-01 10:00:00,500000000", "2024-07-01T10:00:00.500000000Z"} {
			if k.Has(cursor) {
				t.Errorf("layout %q has %q", k.Layout, cursor)
			}
		}
	}
}

func FuzzAppendCursor(f *testing.F) {
	kinds := []timeKind{timeDate, timeWall, timeUTC, timeLTZ}
	for _, text := range []string{" 2024-07-01 10:00:00", " 2024-07-01 10:00:00.500000000 +02:00", "-0044-03-15 00:00:00", " 2024-02-30 25:61:61.000000000"} {
		for k := range kinds {
			f.Add(uint8(k), text)
		}
	}
	f.Fuzz(func(t *testing.T, k uint8, text string) {
		if int(k) >= len(kinds) {
			return
		}
		kind := kinds[k]
		cursor, at, ok := kind.appendCursor(nil, []byte(text), time.UTC)
		if ok && (len(cursor) != len(kind.Layout) || at.Year() < 1) {
			t.Errorf("%q: cursor %q at %s", text, cursor, at)
		}
	})
}

func TestTypeNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"TIMESTAMP(6)": "TIMESTAMP", "TIMESTAMP(3) WITH TIME ZONE": "TIMESTAMP WITH TIME ZONE",
		"INTERVAL DAY(2) TO SECOND(6)": "INTERVAL DAY TO SECOND", "VARCHAR2": "VARCHAR2", "NCHAR": "NCHAR",
		"SDO_GEOMETRY": "SDO_GEOMETRY", "LONG": "LONG",
	} {
		if got := typeName(name); got != want {
			t.Errorf("typeName(%q) = %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"NCHAR": "VARCHAR2", "TimeStampLTZ_DTY": "TIMESTAMP WITH LOCAL TIME ZONE", "TNSType(119)": "JSON",
		"TNSType(200)": "TNSType(200)", "OCIBlobLocator": "BLOB", "LongVarChar": "CLOB", "TIMESTAMP(6)": "TIMESTAMP",
	} {
		if got := driverType(name); got != want {
			t.Errorf("driverType(%q) = %q, want %q", name, got, want)
		}
	}
	if _, err := timeKindOf(source.Column{Name: "ID", Type: "NUMBER"}); err == nil {
		t.Error("a number orders the rows")
	}
}
