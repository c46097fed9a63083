package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// sampleWidth is how many characters of a value a sample shows.
const sampleWidth = 40

// sampled is what a sample shows of an event, apart from its type.
type sampled struct {
	Type    string `json:"type"`
	Subject string `json:"subject"`
	Time    string `json:"time"`
	Data    object `json:"data"`
}

// object is a JSON object whose members keep their order.
type object struct {
	names  []string
	values map[string]json.RawMessage
}

// UnmarshalJSON implements [json.Unmarshaler].
func (o *object) UnmarshalJSON(text []byte) error {
	o.values = make(map[string]json.RawMessage)
	if err := json.Unmarshal(text, &o.values); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		return err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		o.names = append(o.names, fmt.Sprint(name))
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return err
		}
	}
	return nil
}

// printSample prints events as a table: their subjects, times and data.
func printSample(w io.Writer, events []json.RawMessage) error {
	rows, columns := make([]sampled, len(events)), []string(nil)
	for i, e := range events {
		if err := json.Unmarshal(e, &rows[i]); err != nil {
			return fmt.Errorf("read an event: %w", err)
		}
		for _, name := range rows[i].Data.names {
			if !slices.Contains(columns, name) {
				columns = append(columns, name)
			}
		}
	}
	if len(rows) == 0 {
		return nil
	}
	cells := make([][]string, len(rows))
	for i, r := range rows {
		cells[i] = []string{cut(r.Subject), r.Time}
		for _, name := range columns {
			cells[i] = append(cells[i], cut(valueText(r.Data.values[name])))
		}
	}
	var text bytes.Buffer
	if err := table(&text, append([]string{"SUBJECT", "TIME"}, columns...), cells); err != nil {
		return err
	}
	fmt.Fprintf(w, "  the first rows as events of type %s:\n%s\n", rows[0].Type, indented(string(bytes.TrimRight(text.Bytes(), "\n"))))
	return nil
}

// valueText is a text without its quotation marks, unless it is empty, and any other
// value as JSON writes it.
func valueText(value json.RawMessage) string {
	var text string
	if err := json.Unmarshal(value, &text); err == nil && text != "" && !bytes.Equal(value, []byte("null")) {
		return text
	}
	return string(value)
}

// cut shortens a value that would make the table too wide.
func cut(text string) string {
	if utf8.RuneCountInString(text) <= sampleWidth {
		return text
	}
	return string([]rune(text)[:sampleWidth-1]) + "…"
}
