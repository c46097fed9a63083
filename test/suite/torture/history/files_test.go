package history_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/test/suite/torture/history"
)

func TestRunIsLoadedAsItWasSaved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	want := filled()
	if err := history.Save(dir, want); err != nil {
		t.Fatal(err)
	}
	got, err := history.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// A field that filled does not fill would be lost in silence.
func TestEveryFieldIsSaved(t *testing.T) {
	t.Parallel()
	var visit func(path string, v reflect.Value)
	visit = func(path string, v reflect.Value) {
		switch {
		case v.IsZero():
			t.Errorf("%s is not filled in", path)
		case v.Type() == reflect.TypeFor[time.Time]():
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				visit(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		case v.Kind() == reflect.Slice:
			visit(path+"[0]", v.Index(0))
		}
	}
	visit("Run", reflect.ValueOf(filled()))
}

func TestSaveReplacesAnotherRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := history.Save(dir, filled()); err != nil {
		t.Fatal(err)
	}
	want := history.Run{Delivered: []history.Event{{ID: "i"}}}
	if err := history.Save(dir, want); err != nil {
		t.Fatal(err)
	}
	got, err := history.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestLoadNamesTheFileThatIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(text string) string
		want   string
	}{
		"torn":               {func(s string) string { return s[:len(s)-5] }, "unexpected EOF"},
		"torn in the middle": {func(s string) string { return strings.Replace(s, `"N":1`, "\n", 1) }, "invalid character"},
		"an unknown field":   {func(s string) string { return strings.Replace(s, `"N"`, `"M"`, 1) }, `unknown field "M"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			run := history.Run{Writes: []history.Write{{Key: "a", N: 1}, {Key: "b", N: 1}, {Key: "c", N: 1}}}
			if err := history.Save(dir, run); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "writes.jsonl")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(c.damage(string(text))), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := history.Load(dir); err == nil || !strings.Contains(err.Error(), "writes.jsonl") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestLoadWantsEveryFile(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	if err := history.Save(whole, filled()); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(whole)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 15 {
		t.Fatalf("a run has only %d files", len(files))
	}
	for _, file := range files {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, file.Name())); err != nil {
			t.Fatal(err)
		}
		if _, err := history.Load(dir); err == nil || !strings.Contains(err.Error(), file.Name()) {
			t.Errorf("without %s: got %v", file.Name(), err)
		}
	}
}

func at(seconds int) time.Time {
	return time.Date(2026, 5, 6, 7, 8, seconds, 123456000, time.UTC)
}

// filled has something in every field.
func filled() history.Run {
	event := history.Event{Stream: "orders", Seq: 1, ID: "i", Subject: "k<&>\u2028", Version: 1, Change: "new", N: 1, Shape: "n", Xid: "7"}
	return history.Run{
		Meta: history.Meta{
			Seed: 1, Began: at(0), Duration: time.Minute, Nodes: []string{"a"}, Programs: []string{"p1"}, Interval: time.Second, TTL: 2 * time.Second,
			Streams: []history.Stream{{Name: "orders", Type: "order", Mode: history.ModeNew, Table: "orders", LockKey: "l"}},
			Mutant:  "m", Planned: []string{"kill"}, Required: []string{"c"}, Command: "make torture",
			Versions: map[string]string{"go": "1"}, Settings: map[string]string{"fsync": "on"},
		},
		Writes:    []history.Write{{Stream: "orders", Key: event.Subject, N: 1, Gone: true, At: at(1)}},
		Events:    []history.Event{event},
		Delivered: []history.Event{event},
		Steps: []history.Step{{
			ID: 1, Stream: "orders", OldVersion: 1, NewVersion: 2, OldLow: "a", NewLow: "b", OldSeq: 1, NewSeq: 2, Definition: "d", Accepted: 9, AllRead: true, CommitID: "c",
			Xid: "7", At: at(2), Node: "a", Holder: "a", HolderTerm: "t", Expired: true,
		}},
		Leases: []history.Lease{{
			ID: 1, Key: "l", OldTerm: "t", NewTerm: "u", Xid: "7", At: at(3), Node: "a", OldTouched: at(1), NewTouched: at(2),
		}},
		Grants: []history.Grant{{ID: 1, Key: "l", Term: "t", Fence: 1, Node: "a", Xid: "7", At: at(4), TTL: time.Second, Liveness: "gone"}},
		Guarded: []history.Guarded{{
			ID: 1, Key: "k", Mode: "shared", Term: "t", Fence: 1, Node: "p1", TTL: time.Second, Kind: history.Wrote, Trusted: true,
			Began: at(3), At: at(4), Committed: at(5),
		}},
		Turns: []history.Turn{{ID: 1, Type: "order", Turn: at(5), Node: "a", Outcome: "ok", At: at(6)}},
		Parts: []history.Part{{
			ID: 1, Type: "order", Stream: "orders", Turn: at(5), Node: "a", Outcome: "ok", Started: at(5), Finished: at(6),
		}},
		Polls:       []history.Poll{{Stream: "orders", Node: "a", Begin: at(7), End: at(8), Whole: true}},
		Faults:      []history.Fault{{ID: 1, Kind: "kill", Node: "a", Detail: "d", Begin: at(9), End: at(10), Bit: true}},
		Lives:       []history.Life{{Node: "a", Began: at(0), Ended: at(9), How: "kill"}},
		Acts:        []history.Act{{Action: "reset", Subject: "orders", Detail: "forget", Xid: "8", At: at(11)}},
		Disclosures: []history.Disclosure{{Where: "a/a-001.log:17", Text: "c4n4ry"}},
		Counters:    map[string]float64{`polls{type="order"}`: 3},
	}
}
