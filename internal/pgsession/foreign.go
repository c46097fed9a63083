package pgsession

import "strings"

// IsForeign reports whether an attempt to connect has failed because the server answered in
// another protocol, such as that of MariaDB. The driver has no error of its own for that.
func IsForeign(attempt error) bool {
	text := attempt.Error()
	return strings.Contains(text, "received unexpected message") || strings.Contains(text, "failed to receive message: ")
}
