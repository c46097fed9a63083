package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestTextIsEscaped(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"two\n lines\tand a tab":     "two\n lines\tand a tab",
		"k\x1b[31mred\a\r\x00\x7f":   `k\u001b[31mred\u0007\u000d\u0000\u007f`,
		"c1 \u009b31m":               `c1 \u009b31m`,
		"a byte \x9b31m, \xff":       `a byte \x9b31m, \xff`,
		"turned \u202eround\u2066":   `turned \u202eround\u2066`,
		"hidden \U000e0041, \ue0041": "hidden \\U000e0041, \ue0041",
		"a line \u2028 of another":   `a line \u2028 of another`,
		"Käse – 箱 😀 \ufffd\u00a0":    "Käse – 箱 😀 \ufffd\u00a0",
	} {
		var out bytes.Buffer
		if n, err := (&Text{Writer: &out}).Write([]byte(text)); err != nil || n != len(text) || out.String() != want {
			t.Errorf("%q becomes %q (%d bytes, %v), want %q", text, out.String(), n, err, want)
		}
	}
	var out bytes.Buffer
	for piece := range bytes.SplitSeq([]byte("\u009b31m"), nil) { // Byte by byte.
		if _, err := (&Text{Writer: &out}).Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if obeyedIn(out.String()) {
		t.Errorf("in pieces a terminal obeys %q", out.String())
	}
	if n, err := (&Text{Writer: brokenWriter{}}).Write([]byte("text")); n != 0 || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("%d, %v", n, err)
	}
}

// TestJSONIsEscapedAndReadsTheSame has what JSON leaves as it is.
func TestJSONIsEscapedAndReadsTheSame(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"c1 ` + "\u009b31m\u0085" + `"`:        `"c1 \u009b31m\u0085"`,
		`"DEL ` + "\x7f" + `"`:                  `"DEL \u007f"`,
		`"turned ` + "\u202eround\u2066" + `"`:  `"turned \u202eround\u2066"`,
		`"hidden ` + "\U000e0041" + `"`:         `"hidden \udb40\udc41"`,
		`"a byte ` + "\x9b" + `"`:               `"a byte \ufffd"`,
		"{\n  \"Käse – 箱 😀\": \"\\u001b\"\n}\n": "{\n  \"Käse – 箱 😀\": \"\\u001b\"\n}\n",
	} {
		var out bytes.Buffer
		if n, err := (jsonWriter{&out}).Write([]byte(text)); err != nil || n != len(text) || out.String() != want {
			t.Errorf("%q becomes %q (%d bytes, %v), want %q", text, out.String(), n, err, want)
		}
		var before, after any
		if err := errors.Join(json.Unmarshal([]byte(text), &before), json.Unmarshal(out.Bytes(), &after)); err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%q reads as %q, want %q (%v)", text, after, before, err)
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// obeyedIn reports whether a terminal would do something at the text, by a rule of its
// own.
func obeyedIn(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
	})
}
