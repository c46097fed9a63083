package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The files of a run: a line for each record, and what there is once as one
// document. The meta data are written last, so that a folder that has them is
// whole.
const (
	metaFile     = "meta.json"
	countersFile = "counters.json"
)

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
		if err := part.save(filepath.Join(dir, part.file())); err != nil {
			return fmt.Errorf("save a history: %w", err)
		}
	}
	if err := saveDocument(filepath.Join(dir, countersFile), run.Counters); err != nil {
		return fmt.Errorf("save a history: %w", err)
	}
	if err := saveDocument(filepath.Join(dir, metaFile), run.Meta); err != nil {
		return fmt.Errorf("save a history: %w", err)
	}
	return nil
}

// Load reads what [Save] wrote. A file that is missing, a line that is torn, or
// one that holds what this version does not know is an error that names the
// file and the line: a history with a hole would prove nothing.
func Load(dir string) (Run, error) {
	var run Run
	if err := loadDocument(filepath.Join(dir, metaFile), &run.Meta); err != nil {
		return Run{}, fmt.Errorf("load a history: %w", err)
	}
	if err := loadDocument(filepath.Join(dir, countersFile), &run.Counters); err != nil {
		return Run{}, fmt.Errorf("load a history: %w", err)
	}
	for _, part := range run.parts() {
		if err := part.load(filepath.Join(dir, part.file())); err != nil {
			return Run{}, fmt.Errorf("load a history: %w", err)
		}
	}
	return run, nil
}

// part is one file of records.
type part interface {
	file() string
	save(path string) error
	load(path string) error
}

// parts are the files of the run. The names in events and writes are few and
// come a million times, so they are kept once.
func (r *Run) parts() []part {
	once := make(names)
	return []part{
		&records[Write]{"writes", &r.Writes, func(w *Write) { once.share(&w.Stream, &w.Key) }},
		&records[Event]{"events", &r.Events, once.event},
		&deliveries{run: r, once: once},
		&records[Step]{"steps", &r.Steps, nil},
		&records[Lease]{"leases", &r.Leases, nil},
		&records[Grant]{"grants", &r.Grants, nil},
		&records[Turn]{"turns", &r.Turns, nil},
		&records[Part]{"parts", &r.Parts, nil},
		&records[Poll]{"polls", &r.Polls, nil},
		&records[Fault]{"faults", &r.Faults, nil},
		&records[Life]{"lives", &r.Lives, nil},
		&records[Act]{"acts", &r.Acts, nil},
		&records[Disclosure]{"disclosures", &r.Disclosures, nil},
	}
}

// records is a file of one kind of records. tidy, if any, is called with each
// one that was read.
type records[T any] struct {
	name string
	list *[]T
	tidy func(*T)
}

func (r *records[T]) file() string { return r.name + ".jsonl" }

func (r *records[T]) save(path string) error {
	return saveLines(path, func(write func(any) error) error {
		for i := range *r.list {
			if err := write(&(*r.list)[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *records[T]) load(path string) error {
	return loadLines(path, func(v *T) {
		if r.tidy != nil {
			r.tidy(v)
		}
		*r.list = append(*r.list, *v)
	})
}

func saveDocument(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return os.WriteFile(path, append(text, '\n'), 0o644) //nolint:gosec // A report, made to be read.
}

func loadDocument(path string, v any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	decoder := json.NewDecoder(bufio.NewReader(f))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
