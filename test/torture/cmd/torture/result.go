package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/observerd/observerd/test/torture/check"
)

// result is what a run has come to, as its folder keeps it.
type result struct {
	Report   check.Report
	Counters map[string]float64
}

const resultFile = "result.json"

// keep writes the report for people and the result for other commands.
func (r result) keep(dir string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	for name, content := range map[string][]byte{"report.txt": []byte(r.Report.String()), resultFile: append(text, '\n')} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil { //nolint:gosec // People read it.
			return fmt.Errorf("write the result: %w", err)
		}
	}
	return nil
}

func loadResult(dir string) (r result, err error) {
	text, err := os.ReadFile(filepath.Join(dir, resultFile))
	if err != nil {
		return r, fmt.Errorf("read a result; `torture check` writes it: %w", err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read the result in %s: %w", dir, err)
	}
	return r, nil
}
