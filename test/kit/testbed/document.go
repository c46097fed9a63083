package testbed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Write replaces what stands between the lines <!-- name:begin --> and
// <!-- name:end --> of a document, and leaves the rest alone.
func Write(path, name string, text []byte) error {
	return Rewrite(path, name, func([]byte) []byte { return text })
}

// Rewrite is Write for a text that is made of what stands there.
func Rewrite(path, name string, change func(old []byte) []byte) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the document: %w", err)
	}
	begin, end := []byte("<!-- "+name+":begin -->"), []byte("<!-- "+name+":end -->")
	head, rest, begun := bytes.Cut(old, begin)
	figures, tail, ended := bytes.Cut(rest, end)
	if !begun || !ended {
		return fmt.Errorf("%s lacks the lines %s and %s", path, begin, end)
	}
	var b bytes.Buffer
	for _, part := range [][]byte{head, begin, []byte("\n\n"), bytes.TrimSpace(change(figures)), []byte("\n\n"), end, tail} {
		b.Write(part)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil { //nolint:gosec // It is a document.
		return fmt.Errorf("write the document: %w", err)
	}
	return nil
}

// Keep writes results as JSON into a file of the testbed's folder.
func (b *Testbed) Keep(name string, results any) error {
	text, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	path := filepath.Join(b.Folder, name)
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil { //nolint:gosec // As the folder.
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}
