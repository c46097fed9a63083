package mysql

import (
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// What should be a number and is none must not spoil the document.
func TestNumbersAreNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0": "0", "007": "7", "-0.50": "-0.50", "00.5": "0.5", "1e30": "1e30", "1.7976931348623157e308": "1.7976931348623157e308",
		"A-7": `"A-7"`, "": `""`, "-": `"-"`, "1e": `"1e"`, ".5": `".5"`, "5,6": `"5,6"`, "true": `"true"`, `"7"`: `"\"7\""`, "[7]": `"[7]"`, "\t7": `"\t7"`,
	} {
		b, err := source.NewBuilder(observer.Query{}, source.Selection{Columns: []source.Column{{Name: "v"}}, Data: 1, Timestamp: -1})
		if err != nil {
			t.Fatal(err)
		}
		b.Start(0)
		appendNumber(b, 0, []byte(text))
		if got := string(b.Data); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
