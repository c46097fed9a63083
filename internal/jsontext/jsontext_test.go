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
