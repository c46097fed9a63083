//go:build !unix

package fileowner

import "io/fs"

// numbers are not known here.
func numbers(fs.FileInfo) (uid, gid string, ok bool) { return "", "", false }

// OthersMayRead is not known here: files have no mode.
func OthersMayRead(fs.FileInfo) bool { return false }
