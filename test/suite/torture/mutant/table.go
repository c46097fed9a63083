package mutant

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/observerd/observerd/test/suite/torture/check"
)

// Verdict is the result in a few words.
func (r Result) Verdict() string {
	switch {
	case len(r.Caught) > 0:
		return "caught: " + list(r.Caught)
	case r.Witnessed:
		return "caught: " + r.Mutant.Witness
	case r.Err != nil:
		return "not tried: " + r.Err.Error()
	case r.Void != "":
		return "void: " + r.Void
	case len(r.Other) > 0:
		return "got away; found instead: " + list(r.Other)
	}
	return "got away"
}

func list(kinds []check.Kind) string {
	var names []string
	for _, kind := range kinds {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}

// Summary writes a table in Markdown, and returns an error unless each mutant
// was caught.
func Summary(out io.Writer, results []Result) error {
	caught := 0
	fmt.Fprint(out, "| mutant | the step that is missing | found as | trials | took |\n|---|---|---|---:|---:|\n")
	for _, r := range results {
		if len(r.Caught) > 0 || r.Witnessed {
			caught++
		}
		verdict, _, _ := strings.Cut(strings.TrimPrefix(r.Verdict(), "caught: "), "\n")
		fmt.Fprintf(out, "| %s | %s | %s | %d | %s |\n",
			r.Mutant.Name, r.Mutant.Missing(), verdict, r.Trials, r.Took.Round(time.Second))
	}
	fmt.Fprintf(out, "\nMutants caught: %d of %d\n", caught, len(results))
	if caught < len(results) {
		return fmt.Errorf("%w: %d of %d", errAway, len(results)-caught, len(results))
	}
	return nil
}
