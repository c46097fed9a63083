//go:build !unix

package app

// access cannot ask without opening the file, so it leaves the question to
// whoever writes first.
func access(string, bool) error { return nil }
