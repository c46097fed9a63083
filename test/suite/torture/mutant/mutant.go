package mutant

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/observerd/observerd/test/suite/torture/check"
)

// Edit replaces a text of a file. Old must occur in it exactly once.
type Edit struct {
	// File is relative to the root of the repository.
	File     string
	Old, New string
}

// Step is one safety step.
type Step struct {
	// What says what is missing without it, in one sentence.
	What  string
	Edits []Edit
}

// Mutant is a build without some steps.
type Mutant struct {
	Name string
	// Without are the steps that it lacks; more than one where each covers for
	// the others.
	Without []Step
	// Traffic are edits that take no safety away, but send ordinary traffic
	// over the path that was weakened.
	Traffic []Edit
	// Shows says what goes wrong, and when.
	Shows string
	// Expect are the kinds of violations of which at least one must be found. None
	// means that no fault of the torture leads there: then the witness is tried
	// instead.
	Expect []check.Kind
	// Witness is a test that fails without the steps, for certain and without a
	// cluster: the folder of its package and its name. The torture must catch
	// the mutant all the same, where it can.
	Witness string
	Hints   Hints
}

// Hints say what provokes the fault. A run need not follow them to be valid,
// but would need more time.
type Hints struct {
	// Failpoints are values of OBSERVERD_FAILPOINTS: the first start of a node
	// takes the first, the next start of any node the next, and so on in turn.
	// An empty one is a start without. Nil leaves them to the harness.
	Failpoints []string
	// Faults are the kinds that the schedule injects; nil is all of them.
	Faults []string
	// Coordination is what the nodes are coordinated by; empty is the harness's
	// own choice.
	Coordination string
	// Nodes is their number; 0 is the harness's own.
	Nodes int
	// Programs has programs beside the nodes that hold general locks.
	Programs bool
	// ChunkRows is a setting of the daemon; 0 leaves it.
	ChunkRows int
}

// Missing is what the mutant lacks, for people.
func (m Mutant) Missing() string {
	var parts []string
	for _, s := range m.Without {
		parts = append(parts, s.What)
	}
	return strings.Join(parts, "; and ")
}

// Apply writes the edited files into a folder and returns the overlay of
// `go build` that puts them in place of those under root.
func (m Mutant) Apply(root, folder string) (overlay string, err error) {
	texts := make(map[string]string)
	for _, e := range m.edits() {
		text, read := texts[e.File]
		if !read {
			content, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				return "", fmt.Errorf("mutant %s: %w", m.Name, err)
			}
			text = string(content)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return "", fmt.Errorf("mutant %s: %s holds %d times, want once:\n%s", m.Name, e.File, n, e.Old)
		}
		texts[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	return writeOverlay(root, folder, texts)
}

func (m Mutant) edits() []Edit {
	var all []Edit
	for _, s := range m.Without {
		all = append(all, s.Edits...)
	}
	return append(all, m.Traffic...)
}
