//go:build !unix

package sqlite

import "os"

// fileIdentity cannot tell one file from another here.
func fileIdentity(os.FileInfo) string { return "" }
