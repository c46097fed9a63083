//go:build nightly

package lockdb_test

import "testing"

// TestSpringAndOursExcludeEachOtherForLong is TestSpringAndOursExcludeEachOther with
// sections enough for what is rare.
func TestSpringAndOursExcludeEachOtherForLong(t *testing.T) {
	t.Parallel()
	contend(t, 100)
}
