//go:build !failpoints

package failpoint

import "time"

// Enabled reports whether the build has failpoints.
const Enabled = false

// Knows reports whether a variable of the environment is one of this package's.
func Knows(string) bool { return false }

// Check reports an environment that names a point or an action which does not
// exist. It is called once, at the start.
func Check() error { return nil }

// Hit applies the rules of the named step: there are none.
func Hit(string) {}

// ClockOffset is by how much the node's clock is set wrong.
func ClockOffset() time.Duration { return 0 }

// Now is the time of day.
func Now() time.Time { return time.Now() }
