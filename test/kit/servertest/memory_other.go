//go:build !linux

package servertest

// Memory returns "": a folder in memory is known on Linux alone.
func Memory() string { return "" }

func (k Kind) sweepMemory() {}
