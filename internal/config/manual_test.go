package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

// TestManual compares docs/configuration.md with the code, both ways.
func TestManual(t *testing.T) {
	t.Parallel()
	documented := readManual(t)
	for _, key := range config.Keys(wiring.Kinds()) {
		row, ok := documented[key.Name]
		if !ok {
			t.Errorf("the manual lacks %s", key.Name)
			continue
		}
		delete(documented, key.Name)
		if want := (config.Key{Name: key.Name, Unit: row.Unit, Default: row.Default}); key != want {
			t.Errorf("the manual says\n%+v\nand the code\n%+v", want, key)
		}
	}
	for name := range documented {
		t.Errorf("the manual has %s, which the code does not know", name)
	}
}

// readManual reads the rows of the tables with four columns.
func readManual(t *testing.T) map[string]config.Key {
	t.Helper()
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]config.Key)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		name, isKey := strings.CutPrefix(cells[0], "| `")
		if !isKey || len(cells) != 4 {
			continue
		}
		name = strings.TrimSuffix(name, "`")
		if _, twice := rows[name]; twice {
			t.Errorf("the manual has %s twice", name)
		}
		if strings.TrimSpace(strings.TrimSuffix(cells[3], "|")) == "" {
			t.Errorf("the manual says nothing of %s", name)
		}
		value := strings.Trim(cells[2], "`")
		if value == "none" {
			value = ""
		}
		rows[name] = config.Key{Name: name, Unit: cells[1], Default: value}
	}
	return rows
}
