//go:build !unix

package main

import "os"

// terminalHeight is unknown here.
func terminalHeight(*os.File) int { return 0 }
