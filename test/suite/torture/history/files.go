package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The files of a run: a line for each record, and what there is once as one
// document. The meta data are written last, so that a folder that has them is
// whole.
const metaFile = "meta.json"

// Save writes the run into a folder, which it creates, in files that a person
// can read and search. What stood there of another run is overwritten.
func Save(dir string, run Run) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // A report, made to be read.
		return fmt.Errorf("save a history: %w", err)
	}
	if err := os.Remove(filepath.Join(dir, metaFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("save a history: %w", err)
	}
	for _, part := range run.parts() {
		if err := saveFile(filepath.Join(dir, part.file), part.save); err != nil {
			return fmt.Errorf("save a history: %w", err)
		}
	}
	return nil
}

// Load reads what [Save] wrote. A file that is missing, torn, or holds what this
// version does not know is an error that names it: a history with a hole would
// prove nothing.
func Load(dir string) (Run, error) {
	var run Run
	for _, part := range run.parts() {
		if err := loadFile(filepath.Join(dir, part.file), part.load); err != nil {
			return Run{}, fmt.Errorf("load a history: %w", err)
		}
	}
	return run, nil
}

// part is one file of a run.
type part struct {
	file string
	save func(*json.Encoder) error
	load func(*json.Decoder) error
}

// parts are the files of the run, in the order in which they are written.
func (r *Run) parts() []part {
	return []part{
		records("writes", &r.Writes), records("events", &r.Events), records("delivered", &r.Delivered), records("steps", &r.Steps),
		records("leases", &r.Leases), records("grants", &r.Grants), records("guarded", &r.Guarded), records("turns", &r.Turns), records("parts", &r.Parts),
		records("polls", &r.Polls), records("faults", &r.Faults), records("lives", &r.Lives), records("acts", &r.Acts),
		records("disclosures", &r.Disclosures), document("counters.json", &r.Counters), document(metaFile, &r.Meta),
	}
}

func document(file string, v any) part {
	return part{
		file: file,
		save: func(e *json.Encoder) error { e.SetIndent("", "  "); return e.Encode(v) },
		load: func(d *json.Decoder) error { return d.Decode(v) },
	}
}

func records[T any](name string, list *[]T) part {
	return part{
		file: name + ".jsonl",
		save: func(e *json.Encoder) error {
			for i := range *list {
				if err := e.Encode(&(*list)[i]); err != nil {
					return err
				}
			}
			return nil
		},
		load: func(d *json.Decoder) error {
			for {
				var v T
				switch err := d.Decode(&v); {
				case errors.Is(err, io.EOF):
					return nil
				case err != nil:
					return err
				}
				*list = append(*list, v)
			}
		},
	}
}

func saveFile(path string, save func(*json.Encoder) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buffer := bufio.NewWriter(f)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := save(encoder); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return buffer.Flush()
}

func loadFile(path string, load func(*json.Decoder) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	decoder := json.NewDecoder(f)
	decoder.DisallowUnknownFields()
	if err := load(decoder); err != nil {
		return fmt.Errorf("%s, near byte %d: %w", path, decoder.InputOffset(), err)
	}
	return nil
}
