package jsontext_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/observerd/observerd/internal/jsontext"
)

func FuzzAppendString(f *testing.F) {
	for _, text := range []string{"", "plain", "\x00", "a\xff", "é\"\\\n\x01", "\xed\xa0\x80", "\U0001F69A", "\xef\xbf\xbd"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		fromString, ok := jsontext.AppendString([]byte("x"), text)
		fromBytes, okBytes := jsontext.AppendString([]byte("x"), []byte(text))
		if want := utf8.ValidString(text); ok != want || okBytes != want {
			t.Fatalf("%q: ok = %t, %t, want %t", text, ok, okBytes, want)
		}
		if !ok {
			return
		}
		var back string
		if err := json.Unmarshal(fromString[1:], &back); err != nil || back != text || !bytes.Equal(fromString, fromBytes) {
			t.Fatalf("%q became %s and %q, %v", text, fromString, back, err)
		}
	})
}

// TestEveryByteInEveryPlace: eight bytes are looked at together, and each of
// them must count wherever it stands.
func TestEveryByteInEveryPlace(t *testing.T) {
	t.Parallel()
	for c := range 0x80 {
		for place := range 17 {
			text := []byte("abcdefgh abcdefgh")
			text[place] = byte(c)
			got, ok := jsontext.AppendString(nil, text)
			var back string
			if err := json.Unmarshal(got, &back); !ok || err != nil || back != string(text) {
				t.Fatalf("%q became %s, %v", text, got, err)
			}
		}
	}
}
