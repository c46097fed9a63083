package postgres

import (
	"encoding/json"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// Whatever a column of numbers holds, the member is JSON: a number as it stands,
// everything else as text.
func TestNumbers(t *testing.T) {
	t.Parallel()
	selection, err := source.Select(observer.Query{Table: "orders", Key: []string{"id"}}, []source.Column{{Name: "id"}}, "orders")
	if err != nil {
		t.Fatal(err)
	}
	b, err := source.NewBuilder(observer.Query{}, selection)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []kind{kindInteger, kindNumber, kindBool} {
		for _, text := range []string{
			"0", "-7", "10", "0.5", "-12.50", "1e+20", "1.5e-07", "3e5",
			"", "-", "A7", "7A", "007", "-01", ".5", "5.", "1e", "1e+", "1.e5", "NaN", "-Infinity", "1 2", "0x1f", "+1", `"`,
		} {
			b.Start(0)
			appendCell(b, 0, k, []byte(text))
			if !json.Valid(b.Data) {
				t.Errorf("%q as kind %d is %s", text, k, b.Data)
			}
			if want := json.Valid([]byte(text)); k != kindBool && want != (string(b.Data) == text) {
				t.Errorf("%q is %s", text, b.Data)
			}
		}
	}
}
