package systemd

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAStatusIsOneLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Polls":                        "STATUS=Polls",
		"first\nMAINPID=1\r\n\tsecond": "STATUS=first MAINPID=1 second",
		"broken \xff\x00 text":         "STATUS=broken text",
		"turned \u202e\u2028 around":   "STATUS=turned around",
		"":                             "STATUS=",
	} {
		if got := statusLine(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestALongStatusIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	for shift := range 4 {
		text := strings.Repeat("x", shift) + strings.Repeat("世界", 1000)
		got := oneLine(text)
		if len(got) > maxStatus || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
			t.Errorf("%d bytes: …%q", len(got), got[len(got)-10:])
		}
	}
	if exact := strings.Repeat("x", maxStatus); oneLine(exact) != exact {
		t.Error("a text that fits is cut")
	}
}

func TestStacksLoseTheirArguments(t *testing.T) {
	t.Parallel()
	const dump = `goroutine 7 [chan receive, 5 minutes]:
main.(*T).wait(0xc000012345, {0x1, 0x2, {0xdeadbeef, 0x7}})
	/src/main.go:12 +0x1d
main.inlined(...)
	/src/main.go:13
created by main.start in goroutine 1
	/src/main.go:9 +0x44

goroutine 8 [select (no cases)]:
main.f()
	/src/f(0xdead).go:1
`
	got := stacks(dump)
	if len(got) != 2 {
		t.Fatalf("%d stacks: %q", len(got), got)
	}
	has(t, got[0], "goroutine 7 [chan receive, 5 minutes]:\n", "main.(*T).wait(…)\n", "main.inlined(…)\n", "\t/src/main.go:12 +0x1d", "created by main.start in goroutine 1")
	has(t, got[1], "goroutine 8 [select (no cases)]:\n", "main.f(…)\n")
	lacks(t, got[0]+strings.ReplaceAll(got[1], "/src/f(0xdead).go", ""), "0xc000012345", "0xdead")
}
