package source_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/source"
)

func TestAppendMicros(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2026-03-29 01:30:00":           "2026-03-29 01:30:00.000000",
		"2026-03-29 01:30:00.":          "2026-03-29 01:30:00.000000",
		"2026-03-29 01:30:00.5":         "2026-03-29 01:30:00.500000",
		"2026-03-29 01:30:00.123456":    "2026-03-29 01:30:00.123456",
		"2026-03-29 01:30:00.1234567":   "",
		"2026-03-29 01:30:0x":           "",
		"2026-03-29T01:30:00":           "",
		"2026-03-29":                    "",
		"":                              "",
		"12026-03-29 01:30:00":          "",
		"2026-03-29 01:30:00,5":         "",
		"2026-03-29 01:30:00.5 BC":      "",
		"2026-03-29 01:30:00.500000000": "",
	} {
		got, ok := source.AppendMicros([]byte("x"), []byte(text))
		if ok != (want != "") || ok && string(got) != "x"+want {
			t.Errorf("%q: %q, %t, want %q", text, got, ok, want)
		}
	}
}

func TestReadWall(t *testing.T) {
	t.Parallel()
	loc := time.FixedZone("", 3600)
	for text, nanos := range map[string]int{
		"2026-03-29 01:30:07": 0, "2026-03-29 01:30:07.5": 500_000_000,
		"2026-03-29 01:30:07.000120": 120_000, "2026-03-29 01:30:07.123456789": 123_456_789,
	} {
		if got, want := source.ReadWall([]byte(text), loc), time.Date(2026, 3, 29, 1, 30, 7, nanos, loc); !got.Equal(want) {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
	if got, want := source.ReadWall([]byte("2026-03-29"), loc), time.Date(2026, 3, 29, 0, 0, 0, 0, loc); !got.Equal(want) {
		t.Errorf("a date is %v, want %v", got, want)
	}
}
