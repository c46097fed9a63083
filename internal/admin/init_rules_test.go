package admin

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/source"
)

// TestRulesAreDocumented compares the tables of docs/configuration.md with the rules.
func TestRulesAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| a column is refused if | then |\n|---|---|\n")
	for _, r := range refusals {
		fmt.Fprintf(&b, "| %s | offered in a comment, with the reason |\n", r.column)
	}
	b.WriteString("\n")
	rules := b.String()
	b.Reset()
	b.WriteString("| of several columns, and of several tables, the first is that with |\n|---|\n")
	for _, p := range preferences {
		fmt.Fprintf(&b, "| %s |\n", p.first)
	}
	b.WriteString("\n")
	order := b.String()
	b.Reset()
	b.WriteString("| meaning | words of a name |\n|---|---|\n")
	for _, row := range []struct {
		meaning source.Meaning
		says    string
	}{{source.Business, "a business date"}, {source.Changed, "when a row was changed"}, {source.Created, "when a row was created"}} {
		fmt.Fprintf(&b, "| %s | `%s` |\n", row.says, strings.Join(source.MeaningWords[row.meaning], "`, `"))
	}
	b.WriteString("\n")
	for _, table := range []string{rules, order, b.String()} {
		if !strings.Contains(string(page), table) {
			t.Errorf("docs/configuration.md has not this table:\n%s", table)
		}
	}
}

// good is a column that no rule refuses.
func good(change func(c *source.TimeColumn)) moment {
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	c := source.TimeColumn{Name: "updated_at", Default: source.No, OnUpdate: source.No, Trigger: source.No, Indexed: source.No}
	c.Sampled = source.Sampled{Rows: 100, Distinct: 50, Newest: now.Add(-time.Hour)}
	change(&c)
	return moment{c, now}
}

// TestRefusals breaks each rule in turn, in a column that breaks none before.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for n, change := range [...]func(c *source.TimeColumn){
		func(c *source.TimeColumn) { c.Name, c.OnUpdate = "due_at", source.Yes },
		func(c *source.TimeColumn) { c.OtherDefault = true },
		func(c *source.TimeColumn) { c.Sampled.Newest = c.Sampled.Newest.Add(48 * time.Hour) },
		func(c *source.TimeColumn) { c.Nullable, c.Default = true, source.Yes },
		func(c *source.TimeColumn) { c.Sampled.Empty = 1 },
		func(c *source.TimeColumn) { c.Name = "created_at" },
		func(c *source.TimeColumn) {},
	} {
		if got, reason := good(change).refused(); got != n || (reason == "") != (n == len(refusals)) {
			t.Errorf("rule %d: refused by %d, %q", n, got, reason)
		}
	}
	if n, _ := good(func(c *source.TimeColumn) { c.Nullable, c.Default, c.OnUpdate = true, source.Yes, source.Yes }).refused(); n != len(refusals) {
		t.Errorf("a column that may be NULL, but that the database sets, is refused by %d", n)
	}
}

// TestPreferences has for each rule two columns that are equal by those before.
func TestPreferences(t *testing.T) {
	t.Parallel()
	nothing := func(*source.TimeColumn) {}
	pairs := [...][2]func(c *source.TimeColumn){
		{func(c *source.TimeColumn) { c.Sampled.Empty = 1 }, func(c *source.TimeColumn) { c.Name, c.Default = "created_at", source.Yes }},
		{nothing, func(c *source.TimeColumn) { c.Sampled.Empty = 1 }},
		{func(c *source.TimeColumn) { c.Sampled = source.Sampled{} }, func(c *source.TimeColumn) { c.Date = true }},
		{nothing, func(c *source.TimeColumn) {
			c.Sampled.Newest, c.OnUpdate = c.Sampled.Newest.AddDate(0, 0, -2), source.Yes
		}},
		{nothing, func(c *source.TimeColumn) { c.Sampled.Distinct, c.OnUpdate = 1, source.Yes }},
		{func(c *source.TimeColumn) { c.OnUpdate = source.Yes }, func(c *source.TimeColumn) { c.Default, c.Indexed = source.Yes, source.Yes }},
		{func(c *source.TimeColumn) { c.Indexed = source.Yes }, func(c *source.TimeColumn) { c.Sampled.Newest = c.Sampled.Newest.Add(time.Minute) }},
		{nothing, func(c *source.TimeColumn) {
			c.Sampled.Newest, c.Sampled.Distinct = c.Sampled.Newest.Add(-time.Minute), 90
		}},
		{nothing, func(c *source.TimeColumn) { c.Sampled.Distinct = 49 }},
	}
	if len(pairs) != len(preferences) {
		t.Fatalf("%d pairs for %d preferences", len(pairs), len(preferences))
	}
	for n, pair := range pairs {
		better, worse := good(pair[0]), good(pair[1])
		if compareMoments(&better, &worse) >= 0 || compareMoments(&worse, &better) <= 0 {
			t.Errorf("not better is: %s", preferences[n].first)
		}
		for _, p := range preferences[:n] {
			if p.points(better) != p.points(worse) {
				t.Errorf("%s: decided before, by %s", preferences[n].first, p.first)
			}
		}
	}
}
