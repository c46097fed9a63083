//go:build nightly

package lockdb_test

import "testing"

// TestSpringAndOursExcludeEachOtherForLong is TestSpringAndOursExcludeEachOther with
// enough sections for rare events.
func TestSpringAndOursExcludeEachOtherForLong(t *testing.T) {
	t.Parallel()
	contend(t, 100)
}
